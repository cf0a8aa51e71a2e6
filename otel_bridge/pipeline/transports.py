"""The transport that the settings ask for; its library is imported only then."""

from __future__ import annotations

from otel_bridge.export.transport import Transport
from otel_bridge.settings import Exporter, ExportSettings, Protocol


def transport_for(settings: ExportSettings) -> Transport:
    """A transport for these settings. gRPC's library is imported only for gRPC, the HTTP exporter only for HTTP."""
    if settings.exporter is Exporter.CONSOLE:
        from otel_bridge.export.console_transport import ConsoleTransport

        return ConsoleTransport()
    if settings.protocol is Protocol.GRPC:
        from otel_bridge.export.grpc_transport import GrpcTransport

        return GrpcTransport(settings)
    from otel_bridge.export.http_transport import HttpTransport

    return HttpTransport(settings)
