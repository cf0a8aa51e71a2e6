"""Lines in, spans out: the mapping alone, for people who want to do their own thing with what a log becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from otel_bridge.entries.decoding import decode_line
from otel_bridge.entries.entry import Entry, StateChange
from otel_bridge.entries.flaw import Flaw
from otel_bridge.entries.kinds import STRUCTURED_LINE
from otel_bridge.entries.reader import DEFAULT_MAX_LINE_BYTES
from otel_bridge.inprocess.snapshot import snapshot_of_mapping
from otel_bridge.mapping_options import resolve_mapping_options
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span

Line = bytes | str | Mapping[str, object]


def convert(
    lines: Iterable[Line],
    *,
    capture: str | Capture = Capture.ARGUMENTS,
    idle_timeout_s: float = 3600.0,
    end_ms: int | None = None,
    on_malformed: Callable[[int, Flaw], None] = lambda number, flaw: None,
) -> Iterator[Span]:
    """The finished spans of one log, each as soon as a line makes it final.

    `lines` are the log's lines in their order, as text, bytes or decoded JSON objects, such as an open file; lines that
    are no entries are passed over. `end_ms` is what time it is at the end of the lines, in Unix milliseconds: what may
    still live then is given as a snapshot. Without it everything ends, as long after. `on_malformed` is told the number
    of each line that looks like an entry and is none, from 1, and what is wrong with it.

    Pure: the same lines give the same spans as `otel-bridge replay`, at any time and on any machine.

        with open("server.log", "rb") as log:
            for span in convert(log):
                print(span.name, (span.end_ns - span.start_ns) / 1e6, "ms")

    Raises SettingError for an option that cannot be used, TypeError for `lines` that are one text, and ValueError or
    TypeError for an object that has no JSON form.
    """
    if isinstance(lines, bytes | str):
        raise TypeError("lines: give the lines one by one, such as an open file or a list, not one text")
    mapping = LogMapping(resolve_mapping_options(capture, round(idle_timeout_s * 1000)))
    return _converted(lines, mapping, end_ms, on_malformed)


def _converted(
    lines: Iterable[Line], mapping: LogMapping, end_ms: int | None, on_malformed: Callable[[int, Flaw], None]
) -> Iterator[Span]:
    for number, line in enumerate(lines, 1):
        item = _item(line)
        if isinstance(item, Flaw):
            on_malformed(number, item)
        elif item is not None:
            yield from mapping.take([item])
            mapping.touched.clear()
    yield from mapping.server_gone() if end_ms is None else mapping.end(end_ms)


def _item(line: Line) -> Entry | StateChange | Flaw | None:
    if isinstance(line, Mapping):
        snapshot = snapshot_of_mapping(line)
        return decode_line(snapshot) if isinstance(snapshot, bytes) else snapshot
    text = (line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line).strip(b"\0\r\n")
    if STRUCTURED_LINE.search(text) is None:
        return None
    return Flaw.TOO_LONG if len(text) > DEFAULT_MAX_LINE_BYTES else decode_line(text)
