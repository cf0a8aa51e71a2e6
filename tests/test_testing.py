"""The receiver that tests and the demo export to."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Mapping

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from otel_bridge.sessions.span import Span, SpanEvent, SpanKind, SpanLink, StatusCode
from otel_bridge.testing import CannedReply, Receiver, Request, decode_spans

PROTOBUF = {"Content-Type": "application/x-protobuf"}


def export(*span_ids: int, name: str = "tools/call step_over") -> bytes:
    """An export request with one small span for each id."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for span_id in span_ids:
        spans.add(
            trace_id=(7).to_bytes(16, "big"),
            span_id=span_id.to_bytes(8, "big"),
            name=name,
            kind=trace_pb2.Span.SPAN_KIND_SERVER,
            start_time_unix_nano=1_000,
            end_time_unix_nano=2_000,
        )
    return request.SerializeToString()


def post(
    receiver: Receiver, body: bytes, headers: Mapping[str, str] = PROTOBUF, path: str = "/v1/traces"
) -> tuple[int, bytes, Mapping[str, str]]:
    """POST once over a connection of its own: status, body and headers of the reply."""
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=10)
    try:
        connection.request("POST", path, body, dict(headers))
        reply = connection.getresponse()
        return reply.status, reply.read(), dict(reply.getheaders())
    finally:
        connection.close()


def text(key: str, value: str) -> KeyValue:
    """A text attribute in protobuf form."""
    return KeyValue(key=key, value=AnyValue(string_value=value))


def test_decodes_every_part_of_a_span() -> None:
    """A span in protobuf form comes back as the value with the same content."""
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=(1 << 127 | 5).to_bytes(16, "big"),
            span_id=(9).to_bytes(8, "big"),
            parent_span_id=(8).to_bytes(8, "big"),
            trace_state="a=b",
            name="dap launch",
            kind=trace_pb2.Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=10,
            end_time_unix_nano=20,
            dropped_events_count=3,
        )
    )
    span.attributes.extend(
        [
            text("tool", "é"),
            KeyValue(key="ok", value=AnyValue(bool_value=False)),
            KeyValue(key="line", value=AnyValue(int_value=-4)),
            KeyValue(key="ratio", value=AnyValue(double_value=0.5)),
            KeyValue(
                key="files",
                value=AnyValue(array_value=ArrayValue(values=[AnyValue(string_value="a"), AnyValue(string_value="b")])),
            ),
        ]
    )
    span.events.add(name="debug.state.paused", time_unix_nano=15).attributes.append(text("reason", "step"))
    span.links.add(trace_id=(2).to_bytes(16, "big"), span_id=(3).to_bytes(8, "big"), trace_state="c=d")
    span.status.code = trace_pb2.Status.STATUS_CODE_ERROR
    span.status.message = "no"

    (decoded,) = decode_spans(request.SerializeToString())

    assert decoded == Span(
        trace_id=1 << 127 | 5,
        span_id=9,
        parent_id=8,
        name="dap launch",
        kind=SpanKind.CLIENT,
        start_ns=10,
        end_ns=20,
        attributes={"tool": "é", "ok": False, "line": -4, "ratio": 0.5, "files": ("a", "b")},
        events=(SpanEvent("debug.state.paused", 15, {"reason": "step"}),),
        links=(SpanLink(2, 3, "c=d"),),
        status=StatusCode.ERROR,
        status_message="no",
        dropped_events=3,
        trace_state="a=b",
    )


def test_a_root_has_no_parent() -> None:
    """An absent parent id is the 0 that means a root."""
    assert decode_spans(export(1))[0].parent_id == 0


@pytest.mark.parametrize("value", [AnyValue(bytes_value=b"x"), AnyValue()])
def test_a_value_that_no_span_can_hold_is_refused(value: AnyValue) -> None:
    """Bytes and empty values are no attribute of ours: decoding says so instead of losing them."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(kind=trace_pb2.Span.SPAN_KIND_CLIENT)
    span.attributes.append(KeyValue(key="k", value=value))

    with pytest.raises(ValueError, match="no span of ours"):
        decode_spans(request.SerializeToString())


@pytest.mark.parametrize("packed", [False, True])
def test_takes_plain_and_gzip_bodies(packed: bool) -> None:
    """A body is taken plain or gzip-packed, and given back unpacked."""
    body = export(1, 2)
    headers = PROTOBUF | ({"Content-Encoding": "gzip"} if packed else {})

    with Receiver() as receiver:
        status, answer, _ = post(receiver, gzip.compress(body) if packed else body, headers)

    assert (status, answer) == (200, b"")
    assert [span.span_id for span in receiver.spans] == [1, 2]
    assert [body] == [request.body for request in receiver.requests]


def test_an_equal_span_that_is_sent_again_counts_once() -> None:
    """Spans are shown as a backend shows them: the same span twice is one, but every arrival can be seen."""
    with Receiver() as receiver:
        post(receiver, export(1, 2))
        post(receiver, export(2, 3))

    assert [span.span_id for span in receiver.spans] == [1, 2, 3]
    assert [span.span_id for span in receiver.arrived] == [1, 2, 2, 3]


def test_one_id_with_two_contents_is_two_spans() -> None:
    """A span that contradicts an earlier one of the same id does not hide behind it."""
    with Receiver() as receiver:
        post(receiver, export(1, name="a"))
        post(receiver, export(1, name="b"))

    assert [span.name for span in receiver.spans] == ["a", "b"]


def test_answers_by_the_list_and_then_with_200() -> None:
    """Each scripted reply is used once, in order, with its headers and body; only spans answered with a 2xx count."""
    replies = [CannedReply(503, b"busy", {"Retry-After": "7"}), CannedReply(400)]

    with Receiver(replies) as receiver:
        busy = post(receiver, export(1))
        statuses = [post(receiver, export(i))[0] for i in (2, 3)]

    assert (busy[0], busy[1], busy[2]["Retry-After"]) == (503, b"busy", "7")
    assert statuses == [400, 200]
    assert [span.span_id for span in receiver.spans] == [3]
    assert len(receiver.requests) == 3


def test_answers_by_a_function_of_the_request() -> None:
    """A function sees the spans, path and headers of the request and chooses the reply."""

    def too_large(request: Request) -> CannedReply:
        return CannedReply(413 if len(request.spans) > 1 and request.headers["x-test"] == "1" else 200)

    with Receiver(too_large) as receiver:
        statuses = [post(receiver, export(*ids), PROTOBUF | {"X-Test": "1"})[0] for ids in ((1, 2), (1,))]

    assert statuses == [413, 200]


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/v1/metrics", PROTOBUF, export(1), 404),
        ("/v1/traces", {"Content-Type": "application/json"}, b"{}", 415),
        ("/v1/traces", PROTOBUF, b"\xff\xff", 400),
        ("/v1/traces", PROTOBUF | {"Content-Encoding": "gzip"}, b"no gzip", 400),
        ("/v1/traces", PROTOBUF | {"Content-Encoding": "gzip"}, gzip.compress(export(1), mtime=0)[:-9], 400),
        ("/v1/traces", PROTOBUF | {"Transfer-Encoding": "chunked"}, b"0\r\n\r\n", 411),
        ("/v1/traces", PROTOBUF | {"Content-Length": "99999999999"}, b"", 413),
    ],
)
def test_refuses_what_is_no_otlp(path: str, headers: dict[str, str], body: bytes, status: int) -> None:
    """A request that a backend could not read gets that backend's status, is kept, and brings no spans."""
    with Receiver([CannedReply(200)]) as receiver:
        answered = post(receiver, body, headers, path)[0]

    assert status == answered
    assert [request.spans for request in receiver.requests] == [()]
    assert receiver.spans == []


def test_hanging_up_gives_no_answer() -> None:
    """A reply that hangs up closes the connection without a word, and its spans do not count."""
    with Receiver([CannedReply(hang_up=True)]) as receiver:
        with pytest.raises(http.client.RemoteDisconnected):
            post(receiver, export(1))
        post(receiver, export(2))

    assert [span.span_id for span in receiver.spans] == [2]


def test_closing_cuts_a_delayed_reply_short() -> None:
    """Leaving the receiver does not wait for a reply whose delay is far from over; it is not given."""
    asked = threading.Event()

    def slow(_: Request) -> CannedReply:
        asked.set()
        return CannedReply(delay_s=3600)

    with Receiver(slow) as receiver:
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=10)
        connection.request("POST", "/v1/traces", export(1), PROTOBUF)
        assert asked.wait(10)
    with pytest.raises(ConnectionError):
        connection.getresponse()
    connection.close()

    assert len(receiver.requests) == 1
    assert receiver.spans == []


def test_an_idle_open_connection_does_not_hold_up_the_close() -> None:
    """A client that keeps its connection open, with nothing or half a request sent, is cut off at the close."""
    with Receiver() as receiver:
        idle = socket.create_connection(("127.0.0.1", receiver.port), timeout=10)
        half = socket.create_connection(("127.0.0.1", receiver.port), timeout=10)
        half.sendall(b"POST /v1/traces HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc")
        post(receiver, export(1))
    with idle, half:
        assert idle.recv(1) == b""
    assert len(receiver.requests) == 1


def test_one_connection_carries_many_requests() -> None:
    """Connections stay open between requests, as real backends keep them."""
    with Receiver() as receiver:
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=10)
        for span_id in (1, 2):
            connection.request("POST", "/v1/traces", export(span_id), PROTOBUF)
            connection.getresponse().read()
        connection.close()

    assert [span.span_id for span in receiver.spans] == [1, 2]


def test_wait_for_returns_when_the_condition_comes_true() -> None:
    """Waiting ends with the request that makes the condition true."""
    with Receiver() as receiver:
        sender = threading.Thread(target=lambda: [post(receiver, export(i)) for i in (1, 2, 3)])
        sender.start()
        receiver.wait_for(lambda r: len(r.spans) == 3, timeout_s=3600)
        sender.join()

    assert len(receiver.spans) == 3


def test_wait_for_says_what_had_arrived() -> None:
    """Waiting in vain ends with a TimeoutError that counts the requests and spans."""
    with Receiver() as receiver:
        post(receiver, export(1, 2))
        with pytest.raises(TimeoutError, match=r"not within 0 s; 1 requests had arrived, 2 spans"):
            receiver.wait_for(lambda r: len(r.spans) == 3, timeout_s=0)


def test_comes_back_on_the_same_port() -> None:
    """A receiver that was closed can be entered again: same port, and what had arrived is still there."""
    receiver = Receiver()
    with receiver:
        first = receiver.endpoint
        post(receiver, export(1))
    with pytest.raises(ConnectionRefusedError):
        post(receiver, export(2))
    with receiver:
        post(receiver, export(3))
        assert first == receiver.endpoint

    assert [span.span_id for span in receiver.spans] == [1, 3]
