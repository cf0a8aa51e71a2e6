"""The one seam to a backend: bytes of a request go in, its reply comes out."""

from __future__ import annotations

from typing import Protocol

from otel_bridge.export.reply import Reply
from otel_bridge.settings import Exporter, ExportSettings
from otel_bridge.settings import Protocol as OtlpProtocol


class Transport(Protocol):
    """Carries requests to one backend, one at a time, by one thread."""

    @property
    def endpoint(self) -> str:
        """Where it sends, for people: without user info, query and headers."""

    @property
    def proxy(self) -> str:
        """The proxy that it goes through, without user info; empty if it goes there directly."""

    def send(self, body: bytes) -> Reply:
        """Send an `ExportTraceServiceRequest` once and wait for what comes back; whatever does, is a value."""

    def close(self) -> None:
        """Let go of the connection; a `send` that is under way ends by itself."""


def open_transport(settings: ExportSettings) -> Transport:
    """The transport that the settings ask for. Nothing is sent yet; only what it needs is imported.

    Raises `SettingError` for a certificate or key file that holds none, for a proxy that is no URL, and for a
    header that gRPC cannot send.
    """
    if settings.exporter is Exporter.CONSOLE:
        from otel_bridge.export.console_transport import ConsoleTransport

        return ConsoleTransport()
    if settings.protocol is OtlpProtocol.GRPC:
        from otel_bridge.export.grpc_transport import GrpcTransport

        return GrpcTransport(settings)
    from otel_bridge.export.http_transport import HttpTransport

    return HttpTransport(settings)
