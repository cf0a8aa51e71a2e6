"""Are the settings what was meant, and does the endpoint speak OTLP?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from otel_bridge.cli.findings import Finding, fail, ok, warn
from otel_bridge.errors import SettingError
from otel_bridge.settings import Exporter, ExportSettings

if TYPE_CHECKING:
    from otel_bridge.export.reply import Reply

SETTING = "setting"
ENDPOINT = "endpoint"

EMPTY_REQUEST = b""
"""An `ExportTraceServiceRequest` without spans: protobuf leaves out what is empty."""


def check_settings(settings: ExportSettings) -> Iterator[Finding]:
    """The findings on values that can be used and are likely meant otherwise."""
    for notice in settings.notices:
        yield warn(SETTING, "", notice, "correct it")
    if settings.exporter is Exporter.CONSOLE:
        yield ok(SETTING, "--exporter console", "spans go to standard output, no backend is needed")
    elif not settings.notices:
        yield ok(SETTING, "", f"{settings.protocol.value}, {settings.timeout_s:g} s for each request")


def check_endpoint(settings: ExportSettings) -> Iterator[Finding]:
    """Send an empty request and say what comes back."""
    from otel_bridge.export.transport import open_transport

    if settings.exporter is Exporter.CONSOLE:
        return
    try:
        transport = open_transport(settings)
    except SettingError as error:
        yield fail(SETTING, "", error.message, error.hint)
        return
    try:
        if transport.proxy:
            yield warn(
                ENDPOINT,
                transport.endpoint,
                f"exports go through the proxy {transport.proxy}",
                "if that is not meant, put the backend's host into NO_PROXY",
            )
        yield on_reply(transport.endpoint, transport.send(EMPTY_REQUEST))
    finally:
        transport.close()


def on_reply(endpoint: str, reply: Reply) -> Finding:
    """What the answer to an empty request says of an endpoint."""
    from otel_bridge.export.reply import HttpReply
    from otel_bridge.export.verdict import (
        Delivered,
        Misconfigured,
        PartlyRefused,
        Refused,
        TooLarge,
        TryLater,
        judge,
    )

    if isinstance(reply, HttpReply) and reply.status == 200 and "text/html" in reply.content_type.lower():
        return fail(
            ENDPOINT,
            endpoint,
            "answers with a web page: this is the port of a user interface (Jaeger's is 16686)",
            "give the port for OTLP, mostly 4318: --endpoint http://HOST:4318",
        )
    match judge(reply):
        case Delivered(warning):
            if warning:
                return warn(ENDPOINT, endpoint, f"answers OTLP, and says: {warning}", "see the backend's documentation")
            return ok(ENDPOINT, endpoint, "answers OTLP")
        case PartlyRefused(_, message):
            return warn(ENDPOINT, endpoint, f"refuses spans: {message}", "see the backend's own log")
        case TryLater(reason):
            return fail(
                ENDPOINT,
                endpoint,
                f"takes nothing now: {reason}",
                "start the backend, or name it with --endpoint; `tail` would wait for it and lose nothing",
            )
        case TooLarge(reason, code) | Refused(reason, code):
            return warn(
                ENDPOINT,
                endpoint,
                f"answers, but refuses a request without spans: {code}: {reason}",
                "try one with spans: otel-bridge demo, or replay of a log",
            )
        case Misconfigured(message):
            said, _, check = message.rpartition("; ")
            return fail(ENDPOINT, endpoint, said or message, check if said else "check the endpoint")
