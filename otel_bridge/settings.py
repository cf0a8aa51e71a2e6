"""Where to send and as whom: one resolver a setting, argument before environment variable before default.

The variables are OpenTelemetry's, and read as its SDK for Python reads them (its HTTP exporter reads certificates,
client keys and compression once more by itself, so that what it learns to do later works too). An empty variable
counts as not set. Every resolver raises `SettingError`, which names the flag or the variable and never shows a header.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from otel_bridge.errors import SettingError
from otel_bridge.export.resource import Resource
from otel_bridge.urls import clipped, read_url

Environment = Mapping[str, str]

TRACES_PATH = "/v1/traces"
DEFAULT_SERVICE_NAME = "mcp-debugger"
DEFAULT_TIMEOUT_S = 10.0
MAX_PLAUSIBLE_TIMEOUT_S = 600.0
MIN_TIMEOUT_S, MAX_TIMEOUT_S = 0.001, 1_000_000.0
"""What every clock on the way can hold: sockets, timers and gRPC's deadlines end at different places."""


class Exporter(StrEnum):
    """Where spans go: over OTLP to a backend, to standard output, or nowhere."""

    OTLP = "otlp"
    CONSOLE = "console"
    NONE = "none"


class Protocol(StrEnum):
    """The two forms of OTLP that the SDK for Python has, by the names of the specification."""

    HTTP = "http/protobuf"
    GRPC = "grpc"


class Compression(StrEnum):
    """How a request is packed; deflate only over HTTP."""

    NONE = "none"
    GZIP = "gzip"
    DEFLATE = "deflate"


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for TLS, all in PEM: the authority that signed the backend's certificate, and this client's own pair."""

    certificate: str = ""
    client_key: str = ""
    client_certificate: str = ""


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """Everything the export needs. Headers hold secrets: they are in no `repr`.

    `endpoint` is the whole URL over HTTP, and what the client library takes as the target over gRPC (`host:port`).
    `notices` are lines to show once: values that were left out, and ones that are likely meant otherwise.
    """

    exporter: Exporter
    protocol: Protocol
    endpoint: str = field(repr=False)
    is_insecure: bool
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float
    compression: Compression
    tls: Tls
    resource: Resource
    notices: tuple[str, ...] = ()


def resolve_export_settings(
    environ: Environment = os.environ,
    *,
    exporter: str | None = None,
    endpoint: str | None = None,
    protocol: str | None = None,
    headers: Sequence[str] = (),
    service_name: str | None = None,
) -> ExportSettings:
    """The settings that the flags and the environment give together.

    `endpoint` is a base URL, `headers` are `K=V` texts. Raises `SettingError` for a value that cannot be used.
    """
    chosen_exporter, notices = resolve_exporter(exporter, environ)
    chosen_protocol = resolve_protocol(protocol, environ)
    target, is_insecure = resolve_endpoint(endpoint, chosen_protocol, environ)
    if notice := _port_notice(target, chosen_protocol):
        notices.append(notice)
    resource, resource_notices = resolve_resource(service_name, environ)
    timeout_s, timeout_notices = resolve_timeout_s(environ)
    return ExportSettings(
        exporter=chosen_exporter,
        protocol=chosen_protocol,
        endpoint=target,
        is_insecure=is_insecure,
        headers=resolve_headers(headers, environ),
        timeout_s=timeout_s,
        compression=resolve_compression(chosen_protocol, environ),
        tls=resolve_tls(environ),
        resource=resource,
        notices=(*notices, *timeout_notices, *resource_notices),
    )


def _variable(name: str, environ: Environment) -> tuple[str, str]:
    """The value of the variable for traces, else of the one for all signals, and which one it was; ("", "") if none."""
    for full_name in (f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}"):
        if value := environ.get(full_name, "").strip():
            return value, full_name
    return "", ""


def is_disabled(environ: Environment) -> bool:
    """Whether OTEL_SDK_DISABLED switches everything off: only `true` does, in any case."""
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def resolve_exporter(argument: str | None, environ: Environment) -> tuple[Exporter, list[str]]:
    """`--exporter`, OTEL_TRACES_EXPORTER, else OTLP, unless OTEL_SDK_DISABLED is `true`; and what to say about it.

    As the specification of the environment variables wants it, what it does not know counts as not set, and is said.
    """
    if is_disabled(environ):
        return Exporter.NONE, ["OTEL_SDK_DISABLED=true: nothing is exported"]
    notices = []
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip()
    if disabled and disabled.lower() != "false":
        notices.append(f"OTEL_SDK_DISABLED: `{clipped(disabled)}` is neither true nor false and is left out")
    value = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if argument:
        try:
            return Exporter(argument), notices
        except ValueError:
            raise SettingError(f"--exporter: `{clipped(argument)}` is not known", "use otlp or console") from None
    try:
        chosen = Exporter(value.lower() or "otlp")
    except ValueError:
        notices.append(
            f"OTEL_TRACES_EXPORTER: `{clipped(value)}` is not known and is left out; otlp, console and none are"
        )
        chosen = Exporter.OTLP
    if chosen is Exporter.NONE:
        notices.append("OTEL_TRACES_EXPORTER=none: nothing is exported")
    return chosen, notices


def resolve_protocol(argument: str | None, environ: Environment) -> Protocol:
    """`--protocol`, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, OTEL_EXPORTER_OTLP_PROTOCOL, else HTTP."""
    value, source = (argument, "--protocol") if argument else _variable("PROTOCOL", environ)
    try:
        return Protocol(value.lower() or Protocol.HTTP)
    except ValueError:
        raise SettingError(f"{source}: `{clipped(value)}` is not supported", "use http/protobuf or grpc") from None


_HTTP_EXAMPLE = "http://localhost:4318"


def resolve_endpoint(argument: str | None, protocol: Protocol, environ: Environment) -> tuple[str, bool]:
    """`--endpoint`, then the variable for traces (taken as it is), then the one for all signals, then this machine.

    Returns the URL over HTTP, or the target over gRPC; and whether it is without TLS. A base URL gets /v1/traces
    unless it ends with it.
    """
    value, source = (argument.strip(), "--endpoint") if argument else _variable("ENDPOINT", environ)
    if protocol is Protocol.GRPC:
        return _grpc_target(value or "http://localhost:4317", source, environ)
    url = read_url(value or _HTTP_EXAMPLE, source, _HTTP_EXAMPLE)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise SettingError(
            f"{source}: not an http:// or https:// URL", "write it as in http://localhost:4318, with the scheme"
        )
    if source != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":
        path = url.path.rstrip("/")
        url = url._replace(path=path if path.endswith(TRACES_PATH) else path + TRACES_PATH)
    return urlunsplit(url), url.scheme == "http"


_GRPC_RESOLVERS = ("dns:", "unix:", "unix-abstract:", "vsock:", "ipv4:", "ipv6:")
_GRPC_EXAMPLE = "http://localhost:4317"


def _grpc_target(value: str, source: str, environ: Environment) -> tuple[str, bool]:
    """Target and security: by the scheme; without http:// or https:// by OTEL_EXPORTER_OTLP_(TRACES_)INSECURE."""
    if value.lower().startswith(("http:", "https:")):
        url = read_url(value, source, _GRPC_EXAMPLE)
        if not url.hostname:
            raise SettingError(f"{source}: the URL names no host", f"write it as in {_GRPC_EXAMPLE}")
        return url.netloc.rpartition("@")[2], url.scheme == "http"
    if "@" in value and not value.startswith("unix"):
        raise SettingError(f"{source}: a gRPC target has no user and password", "pass them with --header")
    if "/" not in value and not value.startswith(_GRPC_RESOLVERS):
        read_url(f"//{value}", source, _GRPC_EXAMPLE)
    return value, _variable("INSECURE", environ)[0].lower() == "true"


def _port_notice(target: str, protocol: Protocol) -> str:
    try:
        port = (urlsplit(target) if "//" in target else urlsplit(f"//{target}")).port
    except ValueError:  # a gRPC target of another kind
        return ""
    if protocol is Protocol.HTTP and port == 4317:
        return "the endpoint has port 4317, where most backends speak gRPC: pass --protocol grpc, or use port 4318"
    if protocol is Protocol.GRPC and port == 4318:
        return "the endpoint has port 4318, where most backends speak HTTP: drop --protocol grpc, or use port 4317"
    return ""


# The characters of a token and of a value in the W3C's baggage format, by which the variable is defined; space is
# allowed in values, as the SDK does.
_HEADER_NAME = re.compile(r"[!#-'*+\-.0-9A-Z^-z|~]+")
_HEADER_VALUE = re.compile(r"[ !#-+\--:<-\[\]-~]*")
_SENDABLE = re.compile(r"[ -~]*")


def resolve_headers(arguments: Sequence[str], environ: Environment) -> dict[str, str]:
    """The headers of the variable for traces, or of the one for all signals, and over them each `--header K=V`.

    Names come out in lower case. Only the variable's values are percent-decoded.
    """
    headers: dict[str, str] = {}
    value, source = _variable("HEADERS", environ)
    items = [(item.strip(), source, number) for number, item in enumerate(value.split(","), 1) if item.strip()]
    items += [(item, "--header", number) for number, item in enumerate(arguments, 1)]
    for item, where, number in items:
        name, equals, text = item.partition("=")
        name, text = name.strip(), text.strip()
        is_variable = where != "--header"
        if not equals or not _HEADER_NAME.fullmatch(name) or (is_variable and not _HEADER_VALUE.fullmatch(text)):
            raise SettingError(f"{where}: item {number} is not NAME=VALUE", "the value is not shown here on purpose")
        if is_variable:
            name, text = unquote(name).strip(), unquote(text).strip()
        if not _SENDABLE.fullmatch(text) or not _HEADER_NAME.fullmatch(name):
            raise SettingError(f"{where}: item {number} has a character that a header cannot hold", "use plain ASCII")
        headers[name.lower()] = text
    return headers


def resolve_timeout_s(environ: Environment) -> tuple[float, list[str]]:
    """OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT, else 10 s; and what to say about it.

    The SDK for Python reads seconds, the specification says milliseconds: what can only be milliseconds is pointed out.
    """
    value, source = _variable("TIMEOUT", environ)
    if not value:
        return DEFAULT_TIMEOUT_S, []
    try:
        timeout_s = float(value)
    except ValueError:
        timeout_s = math.nan
    if math.isnan(timeout_s):
        raise SettingError(f"{source}: `{clipped(value)}` is no time", "give seconds, as in 10")
    if not MIN_TIMEOUT_S <= timeout_s <= MAX_TIMEOUT_S:
        raise SettingError(
            f"{source}: `{clipped(value)}` is no time from {MIN_TIMEOUT_S:g} to {MAX_TIMEOUT_S:,.0f} seconds",
            "give seconds, as in 10",
        )
    if timeout_s <= MAX_PLAUSIBLE_TIMEOUT_S:
        return timeout_s, []
    return timeout_s, [
        f"{source}={value} is read as seconds, as the OpenTelemetry SDK for Python does;"
        f" if milliseconds are meant, write {timeout_s / 1000:g}"
    ]


def resolve_compression(protocol: Protocol, environ: Environment) -> Compression:
    """OTEL_EXPORTER_OTLP_TRACES_COMPRESSION, OTEL_EXPORTER_OTLP_COMPRESSION, else none."""
    value, source = _variable("COMPRESSION", environ)
    try:
        compression = Compression(value.lower() or "none")
    except ValueError:
        raise SettingError(f"{source}: `{clipped(value)}` is not known", "use gzip or none") from None
    if compression is Compression.DEFLATE and protocol is Protocol.GRPC:
        raise SettingError(f"{source}: deflate is not possible over gRPC", "use gzip or none")
    return compression


def resolve_tls(environ: Environment) -> Tls:
    """The three files of OTEL_EXPORTER_OTLP_(TRACES_)CERTIFICATE, _CLIENT_KEY and _CLIENT_CERTIFICATE."""
    files: list[str] = []
    for name in ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"):
        path, source = _variable(name, environ)
        if path:
            _check_readable(path, source)
        files.append(path)
    tls = Tls(*files)
    if tls.client_key and not tls.client_certificate:
        raise SettingError(
            "OTEL_EXPORTER_OTLP_CLIENT_KEY is set without OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "set both or none"
        )
    return tls


def _check_readable(path: str, source: str) -> None:
    try:
        # A folder of certificates is possible over HTTP; a pipe would be empty at the second reading.
        is_there = Path(path).is_file() or Path(path).is_dir()
    except (OSError, ValueError):  # longer than a path can be
        is_there = False
    if not is_there:
        raise SettingError(f"{source}: no file at {clipped(path)}", "check the path")
    if not os.access(path, os.R_OK):
        raise SettingError(f"{source}: no permission to read {clipped(path)}", "change its mode, or name another file")


def resolve_resource(service_name: str | None, environ: Environment) -> tuple[Resource, list[str]]:
    """OTEL_RESOURCE_ATTRIBUTES and over it the name: `--service-name`, OTEL_SERVICE_NAME, the list's, `mcp-debugger`.

    An item that is not `key=value` is left out, as the SDK does, and said.
    """
    attributes: dict[str, str] = {}
    notices: list[str] = []
    items = environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")
    for number, item in enumerate(items, 1):
        key, equals, value = item.partition("=")
        if equals and key.strip():
            attributes[key.strip()] = unquote(value.strip())
        elif item.strip():
            notices.append(f"OTEL_RESOURCE_ATTRIBUTES: item {number} is not KEY=VALUE and is left out")
    name = service_name or environ.get("OTEL_SERVICE_NAME") or attributes.get("service.name") or DEFAULT_SERVICE_NAME
    return Resource({"service.name": name} | attributes | {"service.name": name}), notices
