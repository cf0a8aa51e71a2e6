"""The status for people: facts, then a table of files and one of open sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from otel_bridge.cli.status_report import Status
from otel_bridge.view.escape import printable
from otel_bridge.view.terminal import console_for, is_ascii_only
from otel_bridge.view.units import duration

Cell = Callable[[object], str]


def print_tables(status: Status, stream: TextIO) -> None:
    """Print the status on `stream`, as wide as it is, with everything that came out of a log escaped."""
    ascii_only = is_ascii_only(stream)

    def shown(value: object) -> str:
        return printable(str(value), ascii_only=ascii_only)

    def ago(time_ms: object) -> str:
        age_s = status.age_s(time_ms)
        return "-" if age_s is None else f"{duration(round(age_s * 1e9), ascii_only=ascii_only)} ago"

    console = console_for(stream)
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(status, shown, ago):
        facts.add_row(Text(name, "bold"), Text(value, overflow="fold"))
    console.print(facts)
    if status.files:
        console.print()
        console.print(
            _table(
                ("FILE", "DELIVERED", "SIZE", "BEHIND", "LAST ENTRY"),
                (
                    (
                        shown(file.path) + (" (gone)" if file.is_gone else ""),
                        f"{file.offset_bytes:,}",
                        f"{file.size_bytes:,}",
                        f"{file.lag_bytes:,}",
                        ago(file.last_entry_ms),
                    )
                    for file in status.files
                ),
                right=(1, 2, 3),
            )
        )
    if status.sessions:
        console.print()
        console.print(
            _table(
                ("OPEN SESSION", "NAME", "LANGUAGE", "BEGAN", "LAST ENTRY"),
                (
                    (shown(one.session_id), shown(one.name), shown(one.language), ago(one.began_ms), ago(one.last_ms))
                    for one in status.sessions
                ),
            )
        )
    if status.runs:
        console.print()
        console.print(
            _table(
                ("RUN", "BEGAN", "WAITS", "DELIVERED BY"),
                (
                    (
                        shown(one.folder),
                        ago(one.started_ms),
                        shown(one.waiting),
                        "itself" if one.is_running else "the next `otel-bridge run`",
                    )
                    for one in status.runs
                ),
            )
        )


def _facts(status: Status, shown: Cell, ago: Cell) -> Iterator[tuple[str, str]]:
    yield "state", shown(status.state_dir)
    yield "bridge", _bridge(status)
    if status.endpoint:
        yield "endpoint", shown(status.endpoint)
    if status.waiting_for:
        yield "waits for", shown(status.waiting_for)
    if not status.has_state and not status.kept.is_there:
        return  # only runs: what is known of them is in their rows
    yield "delivered", _count(status.delivered_spans, "span")
    refused = _count(status.refused_spans, "span")
    if status.kept.spans:
        refused += f"; {status.kept.spans:,} kept, `otel-bridge resend` sends them again"
    if status.kept.broken_lines:
        refused += f"; {_count(status.kept.broken_lines, 'line')} of the dead letters cannot be read"
    if status.lost_spans:
        refused += f"; {status.lost_spans:,} lost, there was no room to keep them"
    yield "refused", refused
    yield "lost", _by_detail(status.lost_bytes, "byte", shown)
    yield "malformed", _by_detail(status.malformed_lines, "line", shown)
    if status.held_files:
        yield "held", f"{_count(status.held_files, 'deleted file')} until read, {status.held_bytes:,} bytes"
    behind = _count(status.lag_bytes, "byte")
    if status.lag_s:
        behind += f", {duration(round(status.lag_s * 1e9))}"
    yield "behind", behind
    if status.last_error:
        yield "last error", f"{ago(status.last_error.get('time_ms'))}: {shown(status.last_error.get('message'))}"


def _bridge(status: Status) -> str:
    runs = f"{status.live_runs} `otel-bridge run`, shown below" if status.live_runs else ""
    if status.holder:
        return f"running, {status.holder}" + (f"; and {runs}" if runs else "")
    return f"running: {runs}; no `otel-bridge tail`" if runs else "not running; start one with `otel-bridge tail`"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def _by_detail(counts: Mapping[str, int], noun: str, shown: Cell) -> str:
    total = _count(sum(counts.values()), noun)
    details = ", ".join(f"{shown(detail.replace('_', ' '))} {count:,}" for detail, count in counts.items())
    return f"{total} ({details})" if details else total


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column, name in enumerate(head):
        table.add_column(name, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
