"""Where a bridge inside a program sends, checked when the bridge is made and opened when there is something to send."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from otel_bridge.errors import SettingError
from otel_bridge.export.transport import Transport, open_transport
from otel_bridge.inprocess.announcements import Announcements
from otel_bridge.inprocess.sinks import DeliverySink, HostSink, Sink
from otel_bridge.settings import Exporter, ExportSettings, is_disabled, resolve_export_settings, resolve_resource

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter


class Target:
    """An exporter or span processor of the host's, else what options and environment say.

    `is_off` says that the environment switches the export off: by OTEL_SDK_DISABLED any, by OTEL_TRACES_EXPORTER=none
    that of no exporter of the host's.

    The transport is made here already, so that whatever is wrong with a setting is said here: raises SettingError for
    it, TypeError for an `exporter` that is none, and ValueError for an option that has no effect beside one.
    """

    def __init__(
        self,
        exporter: SpanExporter | SpanProcessor | None,
        service_name: str | None,
        endpoint: str | None,
        protocol: str | None,
        headers: Mapping[str, str],
    ) -> None:
        self._exporter = exporter
        self._is_open = self._is_childs = False
        self.is_off = is_disabled(os.environ)
        self._settings: ExportSettings | None = None
        self._transport: Transport | None = None
        self._of_the_parent: list[object] = []
        if exporter is None:
            self._settings = _export_settings(service_name, endpoint, protocol, headers)
            self._resource = self._settings.resource
            self.is_off = self._settings.exporter is Exporter.NONE
            self._transport = None if self.is_off else open_transport(self._settings)
        else:
            _check_exporter(exporter)
            if endpoint or protocol or headers:
                raise ValueError("endpoint, protocol and headers have no effect beside an exporter; give them to it")
            self._resource, _ = resolve_resource(service_name, os.environ)

    def open(self, announcements: Announcements) -> Sink:
        """Begin to send."""
        self._is_open = True
        if self._exporter is not None:
            return HostSink(self._exporter, self._resource, announcements)
        assert self._settings is not None
        for notice in self._settings.notices:
            announcements.say(notice)
        transport, self._transport = self._transport or open_transport(self._settings), None
        return DeliverySink(transport, self._resource, announcements)

    def close(self, announcements: Announcements) -> None:
        """Let go of what was never opened. A forked child leaves the host's exporter to the process that made it."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        if self._exporter is not None and not self._is_open and not self._is_childs:
            self._is_open = True
            HostSink(self._exporter, self._resource, announcements).close(0.0)

    def renew(self) -> None:
        """Have the next `open` make a connection of its own: this is a forked child now.

        The parent's is kept as it is: taken apart here, it could say goodbye in the parent's name.
        """
        self._is_childs = True
        self._of_the_parent.append(self._transport)
        self._transport = None


def _export_settings(
    service_name: str | None, endpoint: str | None, protocol: str | None, headers: Mapping[str, str]
) -> ExportSettings:
    try:
        return resolve_export_settings(
            service_name=service_name,
            endpoint=endpoint,
            protocol=protocol,
            headers=[f"{name}={value}" for name, value in headers.items()],
        )
    except SettingError as error:  # it speaks of flags, as on the command line
        raise SettingError(re.sub(r"^--(\w+)", r"\1", error.message), error.hint) from None


def _check_exporter(exporter: object) -> None:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter

    if not isinstance(exporter, SpanExporter | SpanProcessor):
        raise TypeError(f"exporter: a {type(exporter).__name__} is neither a SpanExporter nor a SpanProcessor")
