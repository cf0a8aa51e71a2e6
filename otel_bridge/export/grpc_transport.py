"""OTLP over gRPC: one method of one service, called with the bytes of the request.

The SDK's gRPC exporter has no place where a reply could be seen, so the channel is made here, from the same
OTEL_EXPORTER_OTLP_* variables. Importing this module imports grpcio, which costs 20 MB: only who asks for gRPC pays.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

if "grpc" not in sys.modules:
    # Its core writes lines of its own to standard error, for every failed handshake; the reply says it once.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from otel_bridge.errors import SettingError
from otel_bridge.export.proxy import grpc_proxy_in_use, host_of_target, is_loopback, proxy_urls
from otel_bridge.export.reply import GrpcReply, NotSent, Reply
from otel_bridge.export.secrets import Secrets
from otel_bridge.settings import Compression, ExportSettings
from otel_bridge.urls import without_user_info

EXPORT_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

_NO_CONNECTION = "failed to connect to all addresses"
_HUNG_UP = ("Socket closed", "Connection reset by peer (104)", "Connection reset by peer (54)")
_NOT_TRUSTED = re.compile("CERTIFICATE_VERIFY_FAILED: ([a-z -]+)")

_METADATA_NAME = re.compile(r"[0-9a-z_.\-]+")

# A channel that lost its backend tries again by itself, with waits that grow to two minutes; a backend that is back
# should not have to wait for that.
_CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5000),
)


class GrpcTransport:
    """Sends requests over one channel; see `otel_bridge.export.transport.Transport`."""

    def __init__(self, settings: ExportSettings) -> None:
        target = settings.endpoint
        self.endpoint = without_user_info(target)
        self.proxy = grpc_proxy_in_use(target)
        self._timeout_s = settings.timeout_s
        self._is_insecure = settings.is_insecure
        self._was_answered = False
        self._metadata = _metadata(settings)
        self._secrets = Secrets(settings.headers, proxy_urls())
        compression = grpc.Compression.Gzip if settings.compression is Compression.GZIP else None
        is_direct = is_loopback(host_of_target(target))
        options = [*_CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0 if is_direct else 1)]
        if settings.is_insecure:
            self._channel = grpc.insecure_channel(target, options, compression)
        else:
            self._channel = grpc.secure_channel(target, _credentials(settings), options, compression)
        # Without serializers the bytes go as they are.
        self._export: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(EXPORT_METHOD)

    def send(self, body: bytes) -> Reply:
        """Call Export with `body` and wait for its status. Raises nothing that a network can cause."""
        return replace(self._send(body), secrets=self._secrets)

    def _send(self, body: bytes) -> Reply:
        try:
            answer = self._export(body, timeout=self._timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            details = self._plain(error.details() or "")
            return GrpcReply(error.code().name, details, _retry_after_s(error.trailing_metadata() or ()))
        except ValueError as error:  # the channel was closed
            return NotSent(str(error))
        self._was_answered = True
        return GrpcReply("OK", body=answer)

    def close(self) -> None:
        self._channel.close()

    def _plain(self, details: str) -> str:
        """What the library says of a connection that came to nothing, in plain words where it is known what helps."""
        if not details.startswith(_NO_CONNECTION):
            return details
        if "as the first frame" in details or "http1.x server" in details:
            return "the answer is not gRPC (a port for OTLP over HTTP wants --protocol http/protobuf)"
        if "WRONG_VERSION_NUMBER" in details:
            return "the answer is not TLS (a port without TLS wants http://, not https://)"
        if found := _NOT_TRUSTED.search(details):
            return (
                f"TLS: the certificate is not trusted ({found[1]});"
                " OTEL_EXPORTER_OTLP_CERTIFICATE can name the authority that signed it"
            )
        if self._is_insecure and not self._was_answered and details.endswith(_HUNG_UP):
            return "the connection was closed without an answer (a TLS port wants https://)"
        return details


def _metadata(settings: ExportSettings) -> tuple[tuple[str, str], ...]:
    """The headers, if gRPC can send them: it refuses a call with others as if the spans were at fault."""
    for number, name in enumerate(settings.headers, 1):
        if not _METADATA_NAME.fullmatch(name) or name.startswith("grpc-") or name.endswith("-bin"):
            raise SettingError(f"header {number} has a name that gRPC cannot send", "use letters, digits, _, - and .")
    return tuple(settings.headers.items())


def _credentials(settings: ExportSettings) -> Any:
    return grpc.ssl_channel_credentials(
        root_certificates=_pem(settings.tls.certificate),
        private_key=_pem(settings.tls.client_key),
        certificate_chain=_pem(settings.tls.client_certificate),
    )


def _pem(path: str) -> bytes | None:
    if not path:
        return None
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"cannot read {path}: {error.strerror}", "check the certificate settings") from error
    if b"-----BEGIN " not in data:
        raise SettingError(f"{path} holds no PEM block", "check the certificate settings")
    return data


def _retry_after_s(trailers: Any) -> float | None:
    """The delay of a `RetryInfo`: in the details of the status, as OTLP has it, or in a trailer of its own."""
    for key, value in trailers:
        try:
            if key == "google.rpc.retryinfo-bin":
                info = RetryInfo.FromString(value)
                return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
            if key == "grpc-status-details-bin":
                for detail in Status.FromString(value).details:
                    info = RetryInfo()
                    if detail.Unpack(info):
                        return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
        except DecodeError:
            continue
    return None
