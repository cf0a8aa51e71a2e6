from __future__ import annotations

import pytest

from otel_bridge.errors import SettingError
from otel_bridge.export.proxy import grpc_proxy_in_use, host_of_target, is_loopback, proxy_in_use


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
        ("128.0.0.1", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """This machine is known by its names and addresses alone."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("environ", "url", "expected"),
    [
        ({}, "http://backend/x", ""),
        ({"http_proxy": "http://u:p@proxy:3128"}, "http://backend/x", "http://proxy:3128"),
        ({"http_proxy": "proxy:3128"}, "http://backend/x", "http://proxy:3128"),
        ({"http_proxy": "http://proxy"}, "https://backend/x", ""),
        ({"https_proxy": "http://proxy"}, "https://backend/x", "http://proxy"),
        ({"all_proxy": "http://proxy"}, "https://backend/x", "http://proxy"),
        ({"http_proxy": "http://proxy", "no_proxy": "backend"}, "http://backend/x", ""),
        ({"http_proxy": "http://proxy"}, "http://localhost:4318/x", ""),
        ({"http_proxy": "http://proxy"}, "http://[::1]:4318/x", ""),
    ],
)
def test_http(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, expected: str) -> None:
    """The proxy of the environment is shown without its password; loopback and no_proxy go directly."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert proxy_in_use(url) == expected


@pytest.mark.parametrize(
    ("environ", "target", "expected"),
    [
        ({"http_proxy": "http://u:p@proxy:1"}, "backend:4317", "http://proxy:1"),
        ({"http_proxy": "http://a", "https_proxy": "http://b"}, "backend:4317", "http://b"),
        ({"http_proxy": "http://a", "grpc_proxy": "http://c"}, "dns:///backend:4317", "http://c"),
        ({"http_proxy": "http://a", "no_proxy": "backend"}, "backend:4317", ""),
        ({"http_proxy": "http://a"}, "127.0.0.1:4317", ""),
        ({"http_proxy": "http://a"}, "unix:///run/otel.sock", ""),
        ({}, "backend:4317", ""),
    ],
)
def test_grpc(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], target: str, expected: str) -> None:
    """gRPC's own order of variables is followed."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert grpc_proxy_in_use(target) == expected


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("backend:4317", "backend"),
        ("dns:///backend:4317", "backend"),
        ("[::1]:4317", "::1"),
        ("unix:///x", ""),
        ("[", ""),
    ],
)
def test_host_of_target(target: str, host: str) -> None:
    """The host is found in each form of a gRPC target."""
    assert host_of_target(target) == host


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("http://[::1", "not a URL;"),
        ("http:///nowhere", "the URL names no host;"),
        ("u:s3cret#x@proxy:3128", "not clear where the user and password end;"),
        ("http://u:s3cret@pro xy", "a URL has no spaces"),
        ("http://u:p@proxy:s3cret", "not a URL, its port is no number"),
    ],
)
def test_proxy_that_is_no_url(monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str) -> None:
    """A proxy variable that cannot be used is an error of one line with its name, over both protocols."""
    monkeypatch.setenv(name, value)

    for in_use, where in ((proxy_in_use, "http://backend/x"), (grpc_proxy_in_use, "backend:4317")):
        with pytest.raises(SettingError) as error:
            in_use(where)

        assert str(error.value).startswith(f"{name}: {message}")
        assert "s3cret" not in str(error.value)


def test_proxy_that_is_no_url_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not used does not matter."""
    monkeypatch.setenv("http_proxy", "http://[::1")

    assert (proxy_in_use("http://localhost:4318"), grpc_proxy_in_use("localhost:4317")) == ("", "")
