"""What of a run's calls survives it, as JSON values beside the saved log (saved.py)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from types import MappingProxyType

from otel_bridge.entries.frame import Direction, Gap
from otel_bridge.sessions.attributes import AttributeSet, Failure
from otel_bridge.sessions.calls import OpenCall
from otel_bridge.sessions.frame_call import Answer, FrameCall, SessionRequest
from otel_bridge.sessions.frame_join import Given, GivenCalls, LoggedCall
from otel_bridge.sessions.frame_mapping import FrameMapping
from otel_bridge.sessions.open_span import OpenSpan
from otel_bridge.sessions.saved_values import integer_of, list_of, object_of
from otel_bridge.sessions.trace_context import TraceContext

Json = dict[str, object]


def frames_to_json(mapping: FrameMapping) -> Json:
    """The calls that are not given out, and what is remembered of those that were. All of it is redacted."""
    in_the_log = {one.call.number for one in mapping.calls.tracked}
    return {
        "last_order": mapping.calls.last_order.hex(),
        "calls": [call_to_json(call, in_the_log) for call in mapping.calls.waiting],
        "given": [asdict(one) for one in mapping.calls.given],
        "given_in_log": [one.call.number for one in mapping.calls.tracked if one.is_given],
        "gaps": [asdict(gap) for gap in mapping.calls.gaps],
    }


def restore_frames(mapping: FrameMapping, saved: Json) -> None:
    """Puts back what `frames_to_json` gave, after the log itself. Raises KeyError, TypeError or ValueError."""
    mapping.calls.last_order = bytes.fromhex(str(saved["last_order"]))
    in_the_log = {call.number: call for call in _log_calls(mapping)}
    mapping.calls.waiting = [call_from_json(object_of(one), in_the_log) for one in list_of(saved["calls"])]
    mapping.calls.given = GivenCalls([Given(**object_of(one)) for one in list_of(saved["given"])])  # type: ignore[arg-type]
    gaps = [object_of(one) for one in list_of(saved["gaps"])]
    mapping.calls.gaps = [Gap(**{**gap, "direction": Direction(integer_of(gap["direction"]))}) for gap in gaps]  # type: ignore[arg-type]
    frames = {call.log_number: call for call in mapping.calls.waiting}
    given = {integer_of(one) for one in list_of(saved["given_in_log"])}
    mapping.calls.tracked = [
        LoggedCall(call, "", "", call.span.start_ms, frames.get(number), number in given)
        for number, call in in_the_log.items()
        if call.logged
    ]
    mapping.count_pending()


def _log_calls(mapping: FrameMapping) -> list[OpenCall]:
    books = [session.book for session in mapping.sessions.values()] + list(mapping.loose.books.values())
    calls = [call for book in books for call in book.calls]
    return calls + [create.call for create in mapping.creates.waiting if create.session_id is None]


def call_to_json(call: FrameCall, in_the_log: Collection[int] = ()) -> Json:
    """A call as JSON values; its log's span is left out where it is one of `in_the_log`, which are saved with that."""
    shared = call.log_number in in_the_log
    return {
        "opener": call.opener.hex(),
        "tool": call.tool,
        "session_key": call.session_key,
        "digest": call.digest,
        "start_ns": call.start_ns,
        "attributes": dict(call.attributes),
        "session_id": call.session_id,
        "asked": asdict(call.asked) if call.asked else None,
        "caller": [f"{call.caller.trace_id:032x}", call.caller.span_id, call.caller.trace_state]
        if call.caller
        else None,
        "answer": _answer_to_json(call.answer),
        "cancelled_ns": call.cancelled_ns,
        "log_number": call.log_number,
        "log_span": call.log_span.to_json() if call.log_span and not shared else None,
        "log_answer": _answer_to_json(call.log_answer),
    }


def heard_to_json(call: FrameCall) -> Json:
    """What the frames alone say of a call, as JSON values."""
    return call_to_json(call) | {"log_number": None, "log_span": None, "log_answer": None}


def call_from_json(saved: Json, in_the_log: Mapping[int, OpenCall] = MappingProxyType({})) -> FrameCall:
    """The inverse of `call_to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    asked, caller, span, number = saved["asked"], saved["caller"], saved["log_span"], saved["log_number"]
    shared = in_the_log.get(number) if isinstance(number, int) else None
    trace = list_of(caller) if caller else []
    return FrameCall(
        opener=bytes.fromhex(str(saved["opener"])),
        tool=str(saved["tool"]),
        session_key=str(saved["session_key"]),
        digest=str(saved["digest"]),
        start_ns=integer_of(saved["start_ns"]),
        attributes=AttributeSet(object_of(saved["attributes"])),  # type: ignore[arg-type]
        session_id=_text(saved["session_id"]),
        asked=SessionRequest(**object_of(asked)) if asked else None,  # type: ignore[arg-type]
        caller=TraceContext(int(str(trace[0]), 16), integer_of(trace[1]), str(trace[2])) if trace else None,
        answer=_answer_from_json(saved["answer"]),
        cancelled_ns=None if saved["cancelled_ns"] is None else integer_of(saved["cancelled_ns"]),
        log_number=None if number is None else integer_of(number),
        log_span=shared.span if shared else OpenSpan.from_json(object_of(span)) if span else None,
        log_answer=_answer_from_json(saved["log_answer"]),
    )


def _answer_to_json(answer: Answer | None) -> Json | None:
    if answer is None:
        return None
    return asdict(answer) | {"attributes": dict(answer.attributes)}


def _answer_from_json(saved: object) -> Answer | None:
    if saved is None:
        return None
    values = object_of(saved)
    failure = values.pop("failure")
    return Answer(failure=Failure(**object_of(failure)) if failure else None, **values)  # type: ignore[arg-type]


def _text(saved: object) -> str | None:
    if saved is not None and not isinstance(saved, str):
        raise TypeError(f"no text: {type(saved).__name__}")
    return saved
