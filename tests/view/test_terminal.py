"""What is printed, by what the other end can show."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len

from otel_bridge.view.terminal import console_for, print_listing, print_trace
from otel_bridge.view.totals import tally
from tests.view.test_waterfall import drawn
from tests.view.traces import cart_session, root

ESC = "\x1b"


class Stream(io.TextIOWrapper):
    """A stream of any encoding that says whether it is a terminal, and remembers its bytes."""

    def __init__(self, *, terminal: bool = False, encoding: str = "utf-8") -> None:
        self.written = io.BytesIO()
        super().__init__(self.written, encoding=encoding, newline="\n")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        """What was written, decoded strictly."""
        self.flush()
        return self.written.getvalue().decode(self.encoding)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own terminal reaches the tests."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def printed(stream: Stream) -> str:
    """The picture of the session as it reaches the stream."""
    print_trace(cart_session(), stream)
    return stream.text()


def test_a_pipe_gets_a_hundred_plain_columns() -> None:
    """Under a pipe the picture has no colour and does not depend on the window."""
    assert printed(Stream()) == drawn(cart_session(), 100)


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("7", 60), ("0", 100), ("wide", 100), ("", 100)])
def test_columns_sets_the_width_under_a_pipe(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    """`COLUMNS` is honoured where it is a number, down to the least width that can be drawn."""
    monkeypatch.setenv("COLUMNS", columns)

    assert max(cell_len(line) for line in printed(Stream()).splitlines()) == width


def test_a_terminal_gets_colour_and_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the picture is coloured and as wide as the window."""
    monkeypatch.setenv("COLUMNS", "90")
    text = printed(Stream(terminal=True))

    assert f"{ESC}[31m" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == drawn(cart_session(), 90)


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NO_COLOR` leaves no colour on a terminal either."""
    monkeypatch.setenv("NO_COLOR", "1")

    assert f"{ESC}[31m" not in printed(Stream(terminal=True))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_encoding_without_drawing_characters_gets_ascii(encoding: str) -> None:
    """A stream that cannot carry the drawing gets the ASCII one, and never an encoding error."""
    stream = Stream(encoding=encoding)
    print_trace([root("日本"), *cart_session()[1:]], stream)

    assert stream.text().startswith("\\u65e5\\u672c - python")
    assert stream.text().isascii()


def test_a_listing_is_a_table_on_a_terminal_and_tabs_under_a_pipe() -> None:
    """People get columns and a head, programs get tab-separated values."""
    terminal, pipe = Stream(terminal=True), Stream()
    for stream in (terminal, pipe):
        print_listing(tally(cart_session()), stream)

    assert "TRACE" in terminal.text()
    assert pipe.text() == "806a05897b86490d9928679ab71012c1\tcart total\tpython\t10\t2\t4.000\tnot closed\n"


def test_a_listing_survives_a_poor_encoding() -> None:
    """A name that the stream cannot carry is escaped, on a terminal and under a pipe."""
    for stream in (Stream(terminal=True, encoding="latin-1"), Stream(encoding="latin-1")):
        print_listing(tally([root("日本")]), stream)

        assert "\\u65e5\\u672c" in stream.text()


def test_the_console_takes_text_as_it_is() -> None:
    """Text that looks like markup or an emoji code is printed as it is."""
    stream = Stream()
    console_for(stream).print("[red]x[/red] :smile: 42")

    assert stream.text() == "[red]x[/red] :smile: 42\n"
