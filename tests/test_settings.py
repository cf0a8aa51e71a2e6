from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import OTELResourceDetector
from opentelemetry.util.re import parse_env_headers

from otel_bridge.errors import SettingError
from otel_bridge.settings import (
    Compression,
    Exporter,
    Protocol,
    Tls,
    resolve_compression,
    resolve_endpoint,
    resolve_export_settings,
    resolve_exporter,
    resolve_headers,
    resolve_protocol,
    resolve_resource,
    resolve_timeout_s,
    resolve_tls,
)

ALL = "OTEL_EXPORTER_OTLP_"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_"


def test_defaults() -> None:
    """Without flags and variables everything goes to this machine, over HTTP, as mcp-debugger."""
    settings = resolve_export_settings({})

    assert settings.exporter is Exporter.OTLP
    assert settings.protocol is Protocol.HTTP
    assert (settings.endpoint, settings.is_insecure) == ("http://localhost:4318/v1/traces", True)
    assert (settings.headers, settings.timeout_s, settings.compression) == ({}, 10.0, Compression.NONE)
    assert settings.tls == Tls()
    assert settings.resource.attributes == {"service.name": "mcp-debugger"}
    assert settings.notices == ()


def test_headers_are_in_no_repr() -> None:
    """Secrets of headers and URLs do not come into a log by the settings' own text."""
    settings = resolve_export_settings({}, endpoint="http://u:s3cret@host", headers=["x=s3cret"])

    assert "s3cret" not in repr(settings)
    assert "s3cret" not in str(settings)


DISABLED, CHOSEN = "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"


@pytest.mark.parametrize(
    ("environ", "argument", "expected"),
    [
        ({}, None, Exporter.OTLP),
        ({}, "otlp", Exporter.OTLP),
        ({}, "console", Exporter.CONSOLE),
        ({CHOSEN: "console"}, None, Exporter.CONSOLE),
        ({CHOSEN: " Console "}, None, Exporter.CONSOLE),
        ({CHOSEN: ""}, None, Exporter.OTLP),
        ({CHOSEN: "console"}, "otlp", Exporter.OTLP),
        ({CHOSEN: "none"}, "otlp", Exporter.OTLP),
        ({DISABLED: "false", CHOSEN: "console"}, None, Exporter.CONSOLE),
    ],
)
def test_exporter(environ: dict[str, str], argument: str | None, expected: Exporter) -> None:
    """The flag chooses the exporter, then the variable; OTLP is the default."""
    assert resolve_exporter(argument, environ) == (expected, [])


@pytest.mark.parametrize(
    ("environ", "argument"),
    [
        ({CHOSEN: "none"}, None),
        ({DISABLED: "true"}, None),
        ({DISABLED: "TRUE"}, "console"),
        ({DISABLED: "true", CHOSEN: "otlp"}, "otlp"),
    ],
)
def test_no_exporter(environ: dict[str, str], argument: str | None) -> None:
    """OTEL_SDK_DISABLED is stronger than anything that chooses one; which variable it was is said."""
    exporter, (notice,) = resolve_exporter(argument, environ)

    assert exporter is Exporter.NONE
    assert notice == f"{next(iter(environ))}={'true' if DISABLED in environ else 'none'}: nothing is exported"


@pytest.mark.parametrize("environ", [{CHOSEN: "zipkin"}, {CHOSEN: "otlp,console"}, {DISABLED: "1"}, {DISABLED: "yes"}])
def test_what_the_specification_does_not_know_is_left_out_and_said(environ: dict[str, str]) -> None:
    """A value of these two ends no program (specification of the environment variables, on enum and boolean)."""
    exporter, (notice,) = resolve_exporter(None, environ)

    assert exporter is Exporter.OTLP
    ((name, value),) = environ.items()
    assert notice.startswith(f"{name}: `{value}` is ")
    assert resolve_export_settings(environ).notices == (notice,)


@pytest.mark.parametrize(
    ("environ", "argument", "expected"),
    [
        ({}, None, Protocol.HTTP),
        ({}, "grpc", Protocol.GRPC),
        ({}, "GRPC", Protocol.GRPC),
        ({f"{ALL}PROTOCOL": "grpc"}, None, Protocol.GRPC),
        ({f"{ALL}PROTOCOL": ""}, None, Protocol.HTTP),
        ({f"{ALL}PROTOCOL": "grpc", f"{TRACES}PROTOCOL": "http/protobuf"}, None, Protocol.HTTP),
        ({f"{ALL}PROTOCOL": "http/protobuf", f"{TRACES}PROTOCOL": "grpc"}, None, Protocol.GRPC),
        ({f"{TRACES}PROTOCOL": "grpc"}, "http/protobuf", Protocol.HTTP),
        ({f"{TRACES}PROTOCOL": "nonsense"}, "grpc", Protocol.GRPC),
    ],
)
def test_protocol(environ: dict[str, str], argument: str | None, expected: Protocol) -> None:
    """Flag, then the variable for traces, then the one for all signals, then HTTP."""
    assert resolve_protocol(argument, environ) is expected


@pytest.mark.parametrize(
    ("environ", "argument", "expected"),
    [
        ({}, None, "http://localhost:4318/v1/traces"),
        ({}, "http://host:1", "http://host:1/v1/traces"),
        ({}, "http://host:1/", "http://host:1/v1/traces"),
        ({}, "http://host:1/v1/traces", "http://host:1/v1/traces"),
        ({}, "http://host:1/v1/traces/", "http://host:1/v1/traces"),
        ({}, "https://host/otlp", "https://host/otlp/v1/traces"),
        ({}, "https://u:p@host/otlp?key=x", "https://u:p@host/otlp/v1/traces?key=x"),
        ({}, "http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ({f"{ALL}ENDPOINT": "http://a:1/"}, None, "http://a:1/v1/traces"),
        ({f"{ALL}ENDPOINT": "http://a:1/", f"{TRACES}ENDPOINT": "http://b:2/x/"}, None, "http://b:2/x/"),
        ({f"{TRACES}ENDPOINT": "http://b:2"}, "http://c:3", "http://c:3/v1/traces"),
        ({f"{TRACES}ENDPOINT": " "}, None, "http://localhost:4318/v1/traces"),
    ],
)
def test_http_endpoint(environ: dict[str, str], argument: str | None, expected: str) -> None:
    """A base URL gets /v1/traces unless it has it; the variable for traces is taken as it is."""
    endpoint, is_insecure = resolve_endpoint(argument, Protocol.HTTP, environ)

    assert endpoint == expected
    assert is_insecure == expected.startswith("http:")


@pytest.mark.parametrize(
    ("environ", "argument", "expected"),
    [
        ({}, None, ("localhost:4317", True)),
        ({}, "http://host:1", ("host:1", True)),
        ({}, "https://u:p@host:1/path", ("host:1", False)),
        ({}, "host:1", ("host:1", False)),
        ({f"{ALL}INSECURE": "true"}, "host:1", ("host:1", True)),
        ({f"{ALL}INSECURE": "true", f"{TRACES}INSECURE": "FALSE"}, "host:1", ("host:1", False)),
        ({f"{ALL}INSECURE": "true"}, "https://host:1", ("host:1", False)),
        ({f"{ALL}INSECURE": "false"}, "http://host:1", ("host:1", True)),
        ({f"{ALL}INSECURE": "true"}, "unix:///run/otel.sock", ("unix:///run/otel.sock", True)),
        ({f"{ALL}ENDPOINT": "http://a:1", f"{TRACES}ENDPOINT": "http://b:2"}, None, ("b:2", True)),
    ],
)
def test_grpc_endpoint(environ: dict[str, str], argument: str | None, expected: tuple[str, bool]) -> None:
    """The scheme decides about TLS; without one the variable does, as the specification has it."""
    assert resolve_endpoint(argument, Protocol.GRPC, environ) == expected


@pytest.mark.parametrize(
    ("environ", "arguments", "expected"),
    [
        ({}, [], {}),
        ({}, ["A=b", " c = d=e "], {"a": "b", "c": "d=e"}),
        ({}, ["a=100%25"], {"a": "100%25"}),
        ({f"{ALL}HEADERS": "a=1, b=two%20words ,,"}, [], {"a": "1", "b": "two words"}),
        ({f"{ALL}HEADERS": "a=1", f"{TRACES}HEADERS": "b=2"}, [], {"b": "2"}),
        ({f"{ALL}HEADERS": "Authorization=Bearer x"}, ["authorization=Bearer y"], {"authorization": "Bearer y"}),
        ({f"{ALL}HEADERS": "a=1"}, ["b=2"], {"a": "1", "b": "2"}),
        ({}, ["a="], {"a": ""}),
    ],
)
def test_headers(environ: dict[str, str], arguments: Sequence[str], expected: dict[str, str]) -> None:
    """Each flag adds a header or replaces the variable's; the variable's values are percent-decoded."""
    assert resolve_headers(arguments, environ) == expected


HEADER_TEXT = st.text(st.characters(max_codepoint=0x17F), max_size=20) | st.text("ab=, %2Cé;\"'", max_size=20)


@given(HEADER_TEXT)
@example("a=1,b")
@example("a=%C3%A9")
@example("a=\x7f")
@example("%00=")
def test_headers_agree_with_the_sdk(text: str) -> None:
    """The variable is read as the SDK reads it; where the SDK would drop an item, there is an error instead."""
    logger = logging.getLogger("opentelemetry.util.re")
    dropped: list[logging.LogRecord] = []
    logger.addFilter(dropped.append)  # type: ignore[arg-type]
    try:
        by_sdk = parse_env_headers(text.strip(), liberal=True)
    finally:
        logger.removeFilter(dropped.append)  # type: ignore[arg-type]

    try:
        ours = resolve_headers([], {f"{ALL}HEADERS": text})
    except SettingError:
        assert (
            dropped
            or any(not (part.isascii() and part.isprintable()) for part in (*by_sdk, *by_sdk.values()))
            or any(not name for name in by_sdk)
        )
    else:
        assert not dropped
        assert ours == by_sdk


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, 10.0),
        ({f"{ALL}TIMEOUT": "3"}, 3.0),
        ({f"{ALL}TIMEOUT": "3", f"{TRACES}TIMEOUT": "0.5"}, 0.5),
        ({f"{ALL}TIMEOUT": "600"}, 600.0),
    ],
)
def test_timeout(environ: dict[str, str], expected: float) -> None:
    """The variables are read in seconds, as the SDK does."""
    assert resolve_timeout_s(environ) == (expected, [])


def test_timeout_in_milliseconds() -> None:
    """A timeout that can only be meant in milliseconds is read in seconds all the same, and pointed out."""
    timeout_s, notices = resolve_timeout_s({f"{ALL}TIMEOUT": "10000"})

    assert timeout_s == 10000.0
    assert notices == [
        "OTEL_EXPORTER_OTLP_TIMEOUT=10000 is read as seconds, as the OpenTelemetry SDK for Python does;"
        " if milliseconds are meant, write 10"
    ]
    assert resolve_export_settings({f"{ALL}TIMEOUT": "10000"}).notices == tuple(notices)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, Compression.NONE),
        ({f"{ALL}COMPRESSION": "GZIP"}, Compression.GZIP),
        ({f"{ALL}COMPRESSION": "gzip", f"{TRACES}COMPRESSION": "none"}, Compression.NONE),
        ({f"{ALL}COMPRESSION": "deflate"}, Compression.DEFLATE),
    ],
)
def test_compression(environ: dict[str, str], expected: Compression) -> None:
    """The variable for traces, then the one for all signals, then none."""
    assert resolve_compression(Protocol.HTTP, environ) is expected


def test_tls(tmp_path: Path) -> None:
    """Each file comes from the variable for traces, else from the one for all signals."""
    for name in ("a", "b", "c"):
        tmp_path.joinpath(name).touch()
    environ = {
        f"{ALL}CERTIFICATE": str(tmp_path / "a"),
        f"{ALL}CLIENT_CERTIFICATE": str(tmp_path / "a"),
        f"{TRACES}CLIENT_CERTIFICATE": str(tmp_path / "b"),
        f"{ALL}CLIENT_KEY": str(tmp_path / "c"),
    }

    assert resolve_tls(environ) == Tls(str(tmp_path / "a"), str(tmp_path / "c"), str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("environ", "argument", "expected"),
    [
        ({}, None, {"service.name": "mcp-debugger"}),
        ({"OTEL_SERVICE_NAME": "a"}, None, {"service.name": "a"}),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=b,x=1"}, None, {"service.name": "b", "x": "1"}),
        ({"OTEL_SERVICE_NAME": "a", "OTEL_RESOURCE_ATTRIBUTES": "service.name=b"}, None, {"service.name": "a"}),
        ({"OTEL_SERVICE_NAME": "a", "OTEL_RESOURCE_ATTRIBUTES": "service.name=b"}, "c", {"service.name": "c"}),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": " team = a%2Cb , env=x=y"},
            None,
            {"service.name": "mcp-debugger", "team": "a,b", "env": "x=y"},
        ),
    ],
)
def test_resource(environ: dict[str, str], argument: str | None, expected: dict[str, str]) -> None:
    """The service's name: flag, OTEL_SERVICE_NAME, the (percent-decoded) list of attributes, mcp-debugger."""
    resource, notices = resolve_resource(argument, environ)

    assert resource.attributes == expected
    assert notices == []


@given(st.text(st.sampled_from("ab=,% 2CéE"), max_size=30))
def test_resource_agrees_with_the_sdk(text: str) -> None:
    """OTEL_RESOURCE_ATTRIBUTES is read as the SDK's own detector reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", {"OTEL_RESOURCE_ATTRIBUTES": text})
        patch.setattr("opentelemetry.sdk.resources.environ", os.environ)
        logging.disable()
        try:
            by_sdk = dict(OTELResourceDetector().detect().attributes)
        finally:
            logging.disable(logging.NOTSET)

    ours = dict(resolve_resource(None, {"OTEL_RESOURCE_ATTRIBUTES": text})[0].attributes)
    assert ours == {"service.name": "mcp-debugger"} | by_sdk


def test_what_is_left_out_is_said() -> None:
    """An item of the list that is no attribute is left out and named by its number."""
    resource, notices = resolve_resource(None, {"OTEL_RESOURCE_ATTRIBUTES": "a=1,oops,,=2"})

    assert resource.attributes == {"service.name": "mcp-debugger", "a": "1"}
    assert notices == [
        "OTEL_RESOURCE_ATTRIBUTES: item 2 is not KEY=VALUE and is left out",
        "OTEL_RESOURCE_ATTRIBUTES: item 4 is not KEY=VALUE and is left out",
    ]


@pytest.mark.parametrize(
    ("environ", "flags", "notice"),
    [
        ({}, {"endpoint": "http://localhost:4317"}, "pass --protocol grpc"),
        ({}, {"endpoint": "http://localhost:4318", "protocol": "grpc"}, "drop --protocol grpc"),
        ({}, {"endpoint": "localhost:4318", "protocol": "grpc"}, "drop --protocol grpc"),
    ],
)
def test_ports_that_speak_the_other_protocol(environ: dict[str, str], flags: dict[str, str], notice: str) -> None:
    """The classic mix-up of the two ports is pointed out, with what to change."""
    (only,) = resolve_export_settings(environ, **flags).notices

    assert notice in only


@pytest.mark.parametrize(
    ("environ", "flags", "message"),
    [
        ({}, {"exporter": "file"}, "--exporter: `file` is not known; use otlp or console"),
        ({}, {"protocol": "http/json"}, "--protocol: `http/json` is not supported; use http/protobuf or grpc"),
        ({f"{TRACES}PROTOCOL": "x"}, {}, f"{TRACES}PROTOCOL: `x` is not supported; use http/protobuf or grpc"),
        ({}, {"endpoint": "localhost:4318"}, "--endpoint: not an http:// or https:// URL; write it as in http://"),
        ({}, {"endpoint": "http://"}, "--endpoint: not an http:// or https:// URL"),
        (
            {},
            {"endpoint": "http://host:99999"},
            "--endpoint: not a URL, its port is no number from 0 to 65535; write it as in http://",
        ),
        ({}, {"endpoint": "http://[::1"}, "--endpoint: not a URL; write it as in"),
        ({f"{ALL}ENDPOINT": "ftp://x"}, {}, f"{ALL}ENDPOINT: not an http:// or https:// URL"),
        ({}, {"endpoint": "http://:4317", "protocol": "grpc"}, "--endpoint: the URL names no host"),
        ({}, {"endpoint": "host:port", "protocol": "grpc"}, "--endpoint: not a URL, its port"),
        (
            {},
            {"endpoint": "http://u:s3cret#pw@host"},
            "--endpoint: not clear where the user and password end; in them, #",
        ),
        ({}, {"endpoint": "http://u:1/s3cret@h", "protocol": "grpc"}, "--endpoint: not clear where the user and"),
        ({f"{TRACES}ENDPOINT": "http://u:s3cret?@h"}, {}, f"{TRACES}ENDPOINT: not clear where the user and"),
        ({}, {"endpoint": "u:s3cret@host:1", "protocol": "grpc"}, "--endpoint: a gRPC target has no user and password"),
        ({}, {"endpoint": "ftp://u:s3cret@h", "protocol": "grpc"}, "--endpoint: a gRPC target has no user and"),
        ({}, {"endpoint": "http://ho st"}, "--endpoint: a URL has no spaces and control characters in it"),
        ({}, {"headers": ["s3cret"]}, "--header: item 1 is not NAME=VALUE"),
        ({}, {"headers": ["a=1", "=s3cret"]}, "--header: item 2 is not NAME=VALUE"),
        ({}, {"headers": ["a=s3cret\n"]}, ""),
        ({}, {"headers": ["a=s3\ncret"]}, "--header: item 1 has a character that a header cannot hold"),
        ({f"{ALL}HEADERS": "a=1,s3cret"}, {}, f"{ALL}HEADERS: item 2 is not NAME=VALUE"),
        ({f"{ALL}HEADERS": "a=%0As3cret"}, {}, ""),
        ({f"{ALL}HEADERS": "a=s3%0Acret"}, {}, f"{ALL}HEADERS: item 1 has a character that a header cannot hold"),
        ({f"{ALL}TIMEOUT": "10s"}, {}, f"{ALL}TIMEOUT: `10s` is no time; give seconds, as in 10"),
        ({f"{ALL}TIMEOUT": "0"}, {}, f"{ALL}TIMEOUT: `0` is no time from 0.001 to 1,000,000 seconds; give"),
        ({f"{ALL}TIMEOUT": "nan"}, {}, f"{ALL}TIMEOUT: `nan` is no time"),
        ({f"{ALL}TIMEOUT": "inf"}, {}, f"{ALL}TIMEOUT: `inf` is no time from"),
        *(
            ({f"{ALL}TIMEOUT": value}, {}, f"{ALL}TIMEOUT: `{value}` is no time from 0.001 to 1,000,000 seconds")
            for value in ("1e10", "1e300", "1e-300", "-1")
        ),
        ({f"{ALL}COMPRESSION": "zstd"}, {}, f"{ALL}COMPRESSION: `zstd` is not known; use gzip or none"),
        (
            {f"{ALL}COMPRESSION": "deflate"},
            {"protocol": "grpc"},
            f"{ALL}COMPRESSION: deflate is not possible over gRPC",
        ),
        ({f"{ALL}CERTIFICATE": "/nowhere/x.pem"}, {}, f"{ALL}CERTIFICATE: no file at /nowhere/x.pem; check the path"),
        ({f"{ALL}CERTIFICATE": "/dev/null"}, {}, f"{ALL}CERTIFICATE: no file at /dev/null"),
        ({f"{TRACES}CLIENT_KEY": __file__}, {}, "OTEL_EXPORTER_OTLP_CLIENT_KEY is set without"),
    ],
)
def test_bad_values(environ: dict[str, str], flags: dict[str, object], message: str) -> None:
    """A value that cannot be used is one line that names where it comes from and the next step, and no secret."""
    if not message:
        resolve_export_settings(environ, **flags)  # type: ignore[arg-type]
        return
    with pytest.raises(SettingError) as error:
        resolve_export_settings(environ, **flags)  # type: ignore[arg-type]

    line = str(error.value)
    assert line.startswith(message)
    assert error.value.hint
    assert "\n" not in line
    assert "s3cret" not in line
    assert error.value.exit_code == 2


HUGE = "x" * 100_000
FILES = ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("size", [5_000, 100_000])
def test_path_that_is_longer_than_any(name: str, size: int) -> None:
    """A path that the system does not even look at is no file, in one line that can be read."""
    with pytest.raises(SettingError) as error:
        resolve_tls({f"{ALL}{name}": "/" + "x" * size})

    assert str(error.value).startswith(f"{ALL}{name}: no file at /xxx")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("environ", "flags"),
    [
        *(({f"{ALL}{name}": HUGE}, {}) for name in ("PROTOCOL", "ENDPOINT", "HEADERS", "TIMEOUT", "COMPRESSION")),
        ({}, {"endpoint": f"http://{HUGE}"}),
        ({}, {"exporter": HUGE}),
        ({}, {"protocol": HUGE}),
    ],
)
def test_huge_values_are_not_repeated(environ: dict[str, str], flags: dict[str, str]) -> None:
    """An error stays a line that can be read, however long the value is that it speaks of."""
    with pytest.raises(SettingError) as error:
        resolve_export_settings(environ, **flags)

    assert len(str(error.value)) < 300


@pytest.mark.parametrize("environ", [{CHOSEN: HUGE}, {DISABLED: HUGE}])
def test_huge_values_are_not_repeated_in_notices(environ: dict[str, str]) -> None:
    """Nor does a notice repeat one."""
    assert all(len(notice) < 300 for notice in resolve_export_settings(environ).notices)


def test_unreadable_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate without permission to read it is said as such."""
    file = tmp_path / "x.pem"
    file.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(SettingError, match="CERTIFICATE: no permission to read"):
        resolve_tls({f"{ALL}CERTIFICATE": str(file)})
