"""Log text made fit for a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from otel_bridge.view.escape import printable

ANY_TEXT = st.text(st.characters(exclude_categories=()))
HOSTILE = "\x00\x07\x1b\x7f\x9b\u200b\u200d\u202e\u2028\u2029\u2066\ufeff\ufe0f\u3164\udcff\U000e0041"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/red] \\n", "plain [red]text[/red] \\n"),
        ("é 日本 😀 שלום", "é 日本 😀 שלום"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("two\nlines\r\tend", "two\\nlines\\r\\tend"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
        ("zero\u200bwidth\u200d\ufeff", "zero\\u200bwidth\\u200d\\ufeff"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u3164b\ufe0f\u034f", "a\\u3164b\\ufe0f\\u034f"),
        ("n\u0303", "n\u0303"),
        ("x" + "\u0301" * 6, "x" + "\u0301" * 4 + "\\u0301" * 2),
    ],
)
def test_shows_what_would_act_on_the_terminal(text: str, shown: str) -> None:
    """Ordinary text stays; each character that a terminal would act on or hide becomes a visible escape."""
    assert printable(text) == shown


def test_ascii_only_shows_every_other_character_as_an_escape() -> None:
    """For outputs without Unicode, letters beyond ASCII are escapes too."""
    assert printable("é日😀", ascii_only=True) == "\\xe9\\u65e5\\U0001f600"


@pytest.mark.parametrize(
    ("text", "max_width", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("ab\x1b", 5, "ab…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("", 0, ""),
    ],
)
def test_cuts_at_the_width_between_characters(text: str, max_width: int, shown: str) -> None:
    """A cut leaves room for the ellipsis, halves no wide character and no escape, and is only where one is needed."""
    assert printable(text, max_width) == shown


@given(text=ANY_TEXT, ascii_only=st.booleans(), max_width=st.none() | st.integers(0, 40))
def test_nothing_unseen_comes_out(text: str, ascii_only: bool, max_width: int | None) -> None:
    """Whatever goes in, no control, format, separator, surrogate or unassigned character comes out, and it encodes."""
    shown = printable(text + HOSTILE, max_width, ascii_only=ascii_only)

    unseen = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
    assert not {character for character in shown if unicodedata.category(character) in unseen}
    shown.encode("ascii" if ascii_only else "utf-8")


@given(text=ANY_TEXT, max_width=st.integers(0, 40), ascii_only=st.booleans())
def test_never_wider_than_asked(text: str, max_width: int, ascii_only: bool) -> None:
    """The result fits into the width, whatever the characters are."""
    assert cell_len(printable(text, max_width, ascii_only=ascii_only)) <= max_width


@given(text=ANY_TEXT, ascii_only=st.booleans())
def test_escaping_twice_changes_nothing(text: str, ascii_only: bool) -> None:
    """What was made printable is printable: a second pass leaves it alone."""
    once = printable(text, ascii_only=ascii_only)

    assert printable(once, ascii_only=ascii_only) == once
