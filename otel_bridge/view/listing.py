"""The lines that `replay` prints: one a session, and one for the calls that belong to none."""

from __future__ import annotations

from rich.text import Text

from otel_bridge.view.escape import printable
from otel_bridge.view.totals import LooseTotals, SessionTotals, Tally
from otel_bridge.view.units import duration

_HEAD = ("TRACE", "SESSION", "LANGUAGE", "CALLS", "FAILED", "DURATION", "END")
_RIGHT = (3, 4, 5)
_NAME_CELLS = 40
_LANGUAGE_CELLS = 16


def tab_separated(tally: Tally, *, ascii_only: bool = False) -> list[str]:
    """A line a session for programs: trace id, session name, language, calls, failed, seconds, end.

    Names are escaped, so that no line has more than its six tabs. Calls without a session come last, as a line with
    `-` for the trace id and empty name, language, seconds and end.
    """
    lines = [
        "\t".join(
            (
                f"{session.trace_id:032x}",
                printable(session.name, ascii_only=ascii_only),
                printable(session.language, ascii_only=ascii_only),
                str(session.calls),
                str(session.failures),
                f"{session.duration_ns / 1e9:.3f}",
                printable(session.end, ascii_only=ascii_only),
            )
        )
        for session in tally.sessions()
    ]
    loose = tally.loose()
    if loose.calls:
        lines.append("\t".join(("-", "", "", str(loose.calls), str(loose.failures), "", "")))
    return lines


def aligned(tally: Tally, *, ascii_only: bool = False) -> list[Text]:
    """A table for people: a head, a line a session, and a sentence about the calls without a session."""
    sessions = tally.sessions()
    lines = []
    if sessions:
        table = [_HEAD, *(_cells(session, ascii_only) for session in sessions)]
        widths = [max(Text(row[column]).cell_len for row in table) for column in range(len(_HEAD))]
        lines = [_line(table[0], widths, "bold")]
        lines += [
            _line(cells, widths, failed=session.failures > 0)
            for cells, session in zip(table[1:], sessions, strict=True)
        ]
    loose = tally.loose()
    if loose.calls:
        lines.append(Text(_loose_sentence(loose)))
    return lines


def _cells(session: SessionTotals, ascii_only: bool) -> tuple[str, ...]:
    return (
        f"{session.trace_id:032x}",
        printable(session.name, _NAME_CELLS, ascii_only=ascii_only),
        printable(session.language, _LANGUAGE_CELLS, ascii_only=ascii_only),
        str(session.calls),
        str(session.failures),
        duration(session.duration_ns, ascii_only=ascii_only),
        printable(session.end, ascii_only=ascii_only),
    )


def _line(cells: tuple[str, ...], widths: list[int], style: str = "", *, failed: bool = False) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        pad = " " * (width - Text(cell).cell_len)
        cell_style = "red" if failed and _HEAD[column] == "FAILED" else style
        line.append(pad + cell if column in _RIGHT else cell + pad, cell_style).append("  ")
    line.rstrip()
    return line


def _loose_sentence(loose: LooseTotals) -> str:
    calls = "1 call belongs" if loose.calls == 1 else f"{loose.calls} calls belong"
    failed = f"; {loose.failures} failed" if loose.failures else ""
    each = "it is a trace of its own" if loose.calls == 1 else "each is a trace of its own"
    return f"{calls} to no session: {each}{failed}"
