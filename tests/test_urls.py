from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_bridge.errors import SettingError
from otel_bridge.urls import clipped, read_url, without_user_info

EXAMPLE = "http://localhost:4318"


@pytest.mark.parametrize(
    ("value", "host", "port"),
    [
        ("http://host:1", "host", 1),
        ("http://host.", "host.", None),
        ("http://my_service-1.ns.svc:4318/x?y#z", "my_service-1.ns.svc", 4318),
        ("http://u:p%23%2F%3F%5C@host:1", "host", 1),
        ("http://u:p@ss@host:1", "host", 1),
        ("http://[fe80::1]:1", "fe80::1", 1),
        ("http://10.0.0.1", "10.0.0.1", None),
        ("http://bücher.example", "bücher.example", None),
        ("http://", "", None),
        ("host:1", "", None),
    ],
)
def test_read(value: str, host: str, port: int | None) -> None:
    """What libraries agree on comes out as they read it."""
    url = read_url(value, "--endpoint", EXAMPLE)

    assert (url.hostname or "", url.port if host else None) == (host, port)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((f"http://u:SEKRET{sign}pw@h", "not clear where the user and password end") for sign in "#/?\\"),
        *((f"http://u:12{sign}SEKRET@h", "not clear where the user and password end") for sign in "#/?\\"),
        ("http://h/SEKRET@x", "not clear where the user and password end"),
        ("http://u:SEKRET", "not a URL, its port is no number from 0 to 65535"),
        ("http://u:SEKRET@h:99999", "not a URL, its port is no number from 0 to 65535"),
        ("http://u:SEKRET@[::1", "not a URL"),
        ("http://u:SEKRET@h\u2100x", "not a URL"),
        ("http://u:SEKRET\u0142@h", "the user or password has a character that cannot be sent"),
        ("http://u:SEKRET@ho st", "a URL has no spaces and control characters in it"),
        ("http://u:SEKRET@h\x1b[31m", "a URL has no spaces and control characters in it"),
        ("http://h\\x", "a URL has no \\ in it"),
        ("http://a..b:1", "its host has a dot too many"),
        (f"http://{'a' * 70}:1", "its host is longer than a name can be"),
        (f"http://{'a.' * 130}b:1", "its host is longer than a name can be"),
        (f"http://{'ü' * 70}:1", "its host is no name that can be looked up"),
        ("http://$HOST:1", "its host has a character that no name has"),
    ],
)
def test_refused(value: str, message: str) -> None:
    """What may be read in two ways, or cannot be looked up, is an error that shows nothing of the value."""
    with pytest.raises(SettingError) as error:
        read_url(value, "--endpoint", EXAMPLE)

    assert str(error.value).startswith(f"--endpoint: {message}")
    assert error.value.hint
    assert "SEKRET" not in str(error.value)


@given(st.text(st.characters(exclude_characters="@"), max_size=20), st.text(max_size=5))
def test_no_password_is_shown(before: str, password: str) -> None:
    """Whatever a password is made of, neither an error nor what is shown of a URL holds it."""
    value = f"http://{before}SEKRET{password}@host:1/path"
    said = ""
    try:
        read_url(value, "--endpoint", EXAMPLE)
    except SettingError as error:
        said = str(error)

    assert "SEKRET" not in said
    assert without_user_info(value) == "http://host:1/path"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@host:1/path?token=x#y", "https://host:1/path"),
        ("https://u:p#q@host:1/path", "https://host:1/path"),
        ("host:4317", "host:4317"),
        ("unix:///run/otel.sock", "unix:///run/otel.sock"),
        ("http://h/" + "x" * 1000, "http://h/" + "x" * 190 + "…"),
    ],
)
def test_without_user_info(url: str, shown: str) -> None:
    """User, password, query and fragment are left out of what is shown, and what is too long to read is cut."""
    assert without_user_info(url) == shown


def test_clipped() -> None:
    """A text is cut to the given length, with a sign that it was."""
    assert (clipped("abc", 3), clipped("abcd", 3)) == ("abc", "ab…")
