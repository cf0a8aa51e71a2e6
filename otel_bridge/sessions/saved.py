"""What of a mapping survives a restart, as JSON values (never pickle: a state file is input like any other).

`take_changes` gives what changed since the last call; `restore` puts a mapping back from all that was ever taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.calls import CallBook, OpenCall
from otel_bridge.sessions.creates import PendingCreate
from otel_bridge.sessions.log_mapping import EndedSession, LogMapping
from otel_bridge.sessions.open_span import OpenSpan
from otel_bridge.sessions.saved_values import integer_of, list_of, object_of
from otel_bridge.sessions.session import Session, Totals

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class MappingChanges:
    """Changes of one log's mapping: its own values, its sessions by id (None: forgotten), and its entry counts."""

    log: Json
    sessions: Mapping[str, Json | None]
    occurrences: tuple[tuple[str, int, int], ...]


def take_changes(mapping: LogMapping) -> MappingChanges:
    """What changed since the last call. Everything in it is redacted: the mapping never holds anything else."""
    sessions: dict[str, Json | None] = {}
    for session_id in mapping.touched:
        # A DAP trace is saved with its session, not with the log: of many sessions few change in a batch.
        trace: Json = {"dap": mapping.dap[session_id].to_json()} if session_id in mapping.dap else {}
        if session_id in mapping.sessions:
            sessions[session_id] = _session_to_json(mapping.sessions[session_id]) | trace
        elif session_id in mapping.ended:
            sessions[session_id] = {"ended": asdict(mapping.ended[session_id])} | trace
        else:
            sessions[session_id] = None
    mapping.touched.clear()
    log: Json = {
        "latest_ms": mapping.latest_ms,
        "number": mapping.number,
        "partial_roots": mapping.partial_roots,
        "loose": {key: book.to_json() for key, book in mapping.loose.books.items()},
        "creates": [create.to_json() for create in mapping.creates.waiting],
        "dap_calls_kept": mapping.dap_calls_kept,
    }
    return MappingChanges(log, sessions, tuple(mapping.occurrences.take_changes()))


def restore(
    options: MappingOptions, log: Json, sessions: Mapping[str, Json], occurrences: Iterable[tuple[str, int, int]]
) -> LogMapping:
    """A mapping as it was when these values were taken. Raises KeyError, TypeError or ValueError for anything else."""
    mapping = LogMapping(options)
    restore_into(mapping, log, sessions, occurrences)
    return mapping


def restore_into(
    mapping: LogMapping, log: Json, sessions: Mapping[str, Json], occurrences: Iterable[tuple[str, int, int]]
) -> None:
    """As `restore`, into a mapping that has seen nothing yet."""
    mapping.latest_ms = integer_of(log["latest_ms"])
    mapping.number = integer_of(log["number"])
    mapping.partial_roots = integer_of(log["partial_roots"])
    mapping.dap_calls_kept = integer_of(log["dap_calls_kept"])
    mapping.occurrences.restore(occurrences)
    for session_id, saved in sessions.items():
        if "ended" in saved:
            mapping.ended[session_id] = EndedSession(**object_of(saved["ended"]))  # type: ignore[arg-type]
        else:
            mapping.sessions[session_id] = _session_from_json(session_id, saved, mapping)
        if "dap" in saved:
            _restore_dap(mapping, session_id, object_of(saved["dap"]))
    for key, book in object_of(log["loose"]).items():
        mapping.loose.books[key] = CallBook.from_json(object_of(book))
    for create in list_of(log["creates"]):
        restored = _create_from_json(object_of(create), mapping)
        if restored:
            mapping.creates.waiting.append(restored)


def _session_to_json(session: Session) -> Json:
    held = session.held
    return {
        "root_ms": session.root_ms,
        "last_ms": session.last_ms,
        "name": session.name,
        "language": session.language,
        "book": session.book.to_json(),
        "lifetime": session.lifetime.to_json() if session.lifetime else None,
        "closed_ms": session.closed_ms,
        "state": session.state.to_json() if session.state else None,
        "state_name": session.state_name,
        "has_state_lines": session.has_state_lines,
        "held": [held.kind, held.text, held.time_ms, dict(held.fields)] if held else None,
        "totals": [getattr(session.totals, one.name) for one in fields(Totals)],
        "entries": session.entries,
    }


def _session_from_json(session_id: str, saved: Json, mapping: LogMapping) -> Session:
    values = {name: value for name, value in saved.items() if name != "dap"}
    held = values.pop("held")
    lifetime, state = values.pop("lifetime"), values.pop("state")
    return Session(
        session_id=session_id,
        options=mapping.options,
        occurrences=mapping.occurrences,
        book=CallBook.from_json(object_of(values.pop("book"))),
        lifetime=OpenSpan.from_json(object_of(lifetime)) if lifetime else None,
        state=OpenSpan.from_json(object_of(state)) if state else None,
        held=Entry(*list_of(held)) if held else None,  # type: ignore[arg-type]
        totals=Totals(*list_of(values.pop("totals"))),  # type: ignore[arg-type]
        **values,  # type: ignore[arg-type]
    )


def _restore_dap(mapping: LogMapping, session_id: str, saved: Json) -> None:
    session = mapping.sessions.get(session_id)
    if session is None:
        ended = mapping.ended[session_id]
        session = Session(
            session_id, mapping.options, mapping.occurrences, ended.root_ms, ended.root_ms, ended.name, ended.language
        )
    dap = mapping.dap[session_id] = session.dap_spans(mapping.dap_calls_kept)
    dap.restore(saved)
    session.dap = dap


def _create_from_json(saved: Json, mapping: LogMapping) -> PendingCreate | None:
    values = dict(saved)
    call, number = values.pop("call"), values.pop("number")
    if call is not None:
        return PendingCreate(OpenCall.from_json(object_of(call)), **values)  # type: ignore[arg-type]
    session = mapping.sessions.get(str(values["session_id"]))
    joined = next((one for one in session.book.calls if one.number == number), None) if session else None
    return PendingCreate(joined, **values) if joined else None  # type: ignore[arg-type]
