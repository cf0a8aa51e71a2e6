"""`otel-bridge resend`: refused spans once more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_bridge.cli.resend import PATIENCE_S, Resending, command, halves
from otel_bridge.export.dead_letters import DeadLetters
from otel_bridge.export.encode import SpanEncoder
from otel_bridge.export.reply import HttpReply, NoReply, Reply
from otel_bridge.state.store import StateStore
from otel_bridge.testing import CannedReply, Receiver, Request, decode_spans
from tests.cli.letters import REQUEST, bury, span
from tests.cli.running import run


def left(dead_letters: DeadLetters) -> list[list[str]]:
    """The names of the spans in the letters that are kept."""
    return [[one.name for one in decode_spans(letter.body)] for letter in dead_letters.read().letters]


def refuse(*names: str) -> Callable[[Request], CannedReply]:
    """A backend that refuses each request with one of these spans in it, and takes all others."""

    def reply(request: Request) -> CannedReply:
        is_bad = any(one.name in names for one in request.spans)
        return CannedReply(400, b"poisoned") if is_bad else CannedReply()

    return reply


def test_nothing_kept_is_said(tmp_path: Path) -> None:
    """Without dead letters there is nothing to do: the folder is named, and no backend is asked; exit status 0."""
    ran = run("resend", "--state-dir", tmp_path, "--endpoint", "http://127.0.0.1:9")

    assert ran == (0, f"no refused span is kept in {tmp_path}: there is nothing to send again\n", "")


def test_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A folder that is not there is said to be so, with how to name another, and is not made; exit status 0."""
    folder = tmp_path / "none"

    ran = run("resend", "--state-dir", folder, "--endpoint", "http://127.0.0.1:9")

    assert ran == (
        0,
        f"no bridge has kept anything in {folder}: there is nothing to send again; "
        "if another folder is meant, name it with --state-dir\n",
        "",
    )
    assert not folder.exists()


@pytest.mark.parametrize("name", ["status", "resend", "tail"])
def test_file_in_the_place_of_the_folder(name: str, tmp_path: Path) -> None:
    """A file that is given for the state folder is an error in the arguments, however it is given; exit status 2."""
    file = tmp_path / "file"
    file.touch()
    wanted = (2, "", f"otel-bridge: the state folder {file} is a file; give another with --state-dir\n")

    assert run(name, "--state-dir", file) == wanted
    assert run(name, environ={"OTEL_BRIDGE_STATE_DIR": str(file)}) == wanted


def test_what_is_taken_now_is_removed(tmp_path: Path) -> None:
    """Every letter is delivered with the resource it had, and none is left; exit status 0."""
    dead_letters = bury(tmp_path, [1], [2], [3])
    with Receiver() as receiver:
        ran = run("resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint, "--service-name", "now")

        assert ran == (0, "3 spans delivered\n", "")
        assert receiver.spans == [span(1), span(2), span(3)]
        resource = ExportTraceServiceRequest.FromString(receiver.requests[0].body).resource_spans[0].resource
        assert resource.attributes[0].value.string_value == "then"
    assert left(dead_letters) == []


def test_what_is_refused_again_stays_with_its_reason(tmp_path: Path) -> None:
    """A reason is said once with a count; the others are delivered all the same; exit status 1."""
    dead_letters = bury(tmp_path, [1], [2], [3], [4])
    with Receiver(refuse("span 2", "span 3")) as receiver:
        ran = run("resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint)

        endpoint = f"{receiver.endpoint}/v1/traces"
    assert ran == (
        1,
        "2 spans delivered; 2 spans kept for the next time\n",
        f"otel-bridge: {endpoint} refused 2 spans again: HTTP 400: poisoned\n",
    )
    assert left(dead_letters) == [["span 2"], ["span 3"]]


def test_good_spans_of_a_letter_get_through_beside_a_bad_one(tmp_path: Path) -> None:
    """A letter of several spans is halved down to the bad one; it stays whole, because a span counts once anyway."""
    dead_letters = bury(tmp_path, [1, 2, 3, 4, 5], refused_count=2)
    with Receiver(refuse("span 4")) as receiver:
        ran = run("resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint)

        assert sorted(one.name for one in receiver.spans) == ["span 1", "span 2", "span 3", "span 5"]
    assert ran.status == 1
    assert "refused 1 span again: HTTP 400: poisoned" in ran.err
    assert left(dead_letters) == [["span 1", "span 2", "span 3", "span 4", "span 5"]]


def test_wrong_endpoint_ends_it_at_once_and_keeps_all(tmp_path: Path) -> None:
    """What only a person can mend is said after the first request; exit status 1."""
    dead_letters = bury(tmp_path, [1], [2])
    with Receiver(lambda request: CannedReply(401)) as receiver:
        ran = run(
            "resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint, "--header", "authorization=hidden"
        )

        assert len(receiver.requests) == 1
    assert ran.status == 1
    assert "HTTP 401; check --header" in ran.err
    assert "hidden" not in ran.err + ran.out
    assert ran.out == "0 spans delivered; 2 spans kept for the next time\n"
    assert left(dead_letters) == [["span 1"], ["span 2"]]


def test_console_shows_the_spans_and_keeps_them(tmp_path: Path) -> None:
    """Showing is not delivering: with --exporter console the letters stay."""
    dead_letters = bury(tmp_path, [1], [2])

    ran = run("resend", "--state-dir", tmp_path, "--exporter", "console")

    assert ran.status == 0
    assert [f'"name":"span {n}"' in line for n, line in enumerate(ran.out.splitlines(), 1)] == [True, True]
    assert ran.err == "otel-bridge: 2 spans shown, and kept\n"
    assert len(left(dead_letters)) == 2


def test_bridge_may_run_meanwhile(tmp_path: Path) -> None:
    """The state's lock does not matter to resend: letters that a bridge adds meanwhile stay for the next time."""
    dead_letters = bury(tmp_path, [1])

    def reply(request: Request) -> CannedReply:
        bury(tmp_path, [2])
        return CannedReply()

    with StateStore.open(tmp_path), Receiver(reply) as receiver:
        ran = run("resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint)

    assert ran == (0, "1 span delivered\n", "")
    assert left(dead_letters) == [["span 2"]]


def test_lines_that_are_no_letters_are_named_and_left(tmp_path: Path) -> None:
    """What a kill cut off is said and stays; the rest is delivered."""
    dead_letters = bury(tmp_path, [1])
    with dead_letters.path.open("ab") as file:
        file.write(b'{"refused": {"cou')
    with Receiver() as receiver:
        ran = run("resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint)

    assert (ran.status, ran.out) == (0, "1 span delivered\n")
    assert f"{dead_letters.path}: 1 of its lines hold no spans" in ran.err
    assert dead_letters.read().broken_lines == 1


def test_nothing_but_broken_lines_is_no_success(tmp_path: Path) -> None:
    """Refused spans are kept, and cannot be read: it says so, sends nothing, and exits with 1."""
    path = bury(tmp_path, [1]).path
    path.write_bytes(path.read_bytes()[:50])
    with Receiver() as receiver:
        ran = run("resend", "--state-dir", tmp_path, "--endpoint", receiver.endpoint)

    assert (ran.status, ran.out) == (1, "no refused span can be read: nothing was sent again\n")
    assert "1 of its lines hold no spans" in ran.err
    assert receiver.requests == []


def test_console_shows_letters_from_elsewhere(tmp_path: Path) -> None:
    """A span without a kind, or with one and a status that OTLP does not know yet, is shown like any other."""
    dead_letters = bury(tmp_path, [1], [2])
    data = dead_letters.path.read_bytes()
    first, second = data.splitlines()
    first = first.replace(b'"kind":2,', b"")
    second = second.replace(b'"kind":2,', b'"kind":9,').replace(b'"status":{}', b'"status":{"code":7}')
    dead_letters.path.write_bytes(first + b"\n" + second + b"\n")

    ran = run("resend", "--state-dir", tmp_path, "--exporter", "console")

    assert (ran.status, ran.err) == (0, "otel-bridge: 2 spans shown, and kept\n")
    one, other = map(json.loads, ran.out.splitlines())
    assert (one["name"], one["kind"]) == ("span 1", "UNSPECIFIED")
    assert (other["name"], other["kind"], other["status"]) == ("span 2", "9", "7")


class Backend:
    """A transport that gives these replies, the last one for ever; its clock moves by the waits alone."""

    endpoint = "backend"
    proxy = ""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.sent: list[bytes] = []
        self.now_s = 0.0

    def send(self, body: bytes) -> Reply:
        self.sent.append(body)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def close(self) -> None:
        pass

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def resend_to(backend: Backend, dead_letters: DeadLetters) -> Resending:
    """What comes of sending all letters to the backend."""
    resending = Resending(backend, backend.wait, lambda: backend.now_s)
    resending.run(dead_letters.read().letters)
    return resending


def test_busy_backend_is_asked_again(tmp_path: Path) -> None:
    """No answer and 503 are tried again after a wait, as long as the backend asked for."""
    backend = Backend(NoReply("connection refused"), HttpReply(503, retry_after="7"), HttpReply(200))

    resending = resend_to(backend, bury(tmp_path, [1], [2]))

    assert resending.delivered_spans == 2
    assert len(backend.sent) == 4
    assert 7 <= backend.now_s <= PATIENCE_S


@pytest.mark.parametrize("reply", [NoReply("connection refused"), HttpReply(429, retry_after="600")])
def test_patience_ends(tmp_path: Path, reply: Reply) -> None:
    """With nothing getting through it gives up within its patience, and sends no further letter."""
    backend = Backend(reply)

    resending = resend_to(backend, bury(tmp_path, [1], [2]))

    assert resending.delivered == []
    assert resending.trouble.endswith("; try again later")
    assert set(backend.sent) == {backend.sent[0]}
    assert backend.now_s <= PATIENCE_S


@pytest.mark.parametrize(("rejected", "counted"), [(2, 2), (230, 3)])
def test_partial_success_counts_what_the_backend_says(rejected: int, counted: int, tmp_path: Path) -> None:
    """Of a letter that is refused in part again the count, at most what was sent, and the message are kept."""
    body = b'{"partialSuccess": {"rejectedSpans": "%d", "errorMessage": "too old"}}' % rejected
    backend = Backend(HttpReply(200, "application/json", body))

    resending = resend_to(backend, bury(tmp_path, [1, 2, 3], refused_count=2))

    assert resending.delivered == []
    assert resending.refused == {"too old": counted}


@pytest.mark.parametrize("count", range(1, 8))
def test_halves_hold_every_span_once_in_order(count: int) -> None:
    """Two parts have all spans between them, with resource and scope; a single span cannot be halved."""
    encoder = SpanEncoder()
    body = REQUEST.encode([encoder.encode(span(number)) for number in range(1, count + 1)])

    parts = halves(body)

    if count == 1:
        assert parts == []
        return
    assert len(parts) == 2
    found = [decode_spans(part) for part in reversed(parts)]
    assert [one for part in found for one in part] == [span(number) for number in range(1, count + 1)]
    assert all(found)
    assert all(
        ExportTraceServiceRequest.FromString(part).resource_spans[0].resource.attributes[0].key == "service.name"
        for part in parts
    )


def test_halves_of_several_resources_hold_every_span_once() -> None:
    """A letter that was put together elsewhere may have more than one resource."""
    encoder = SpanEncoder()
    whole = ExportTraceServiceRequest()
    for numbers in ([1, 2, 3], [4], [5, 6]):
        part = REQUEST.encode([encoder.encode(span(number)) for number in numbers])
        whole.MergeFrom(ExportTraceServiceRequest.FromString(part))

    second, first = halves(whole.SerializeToString())

    assert decode_spans(first) == (span(1), span(2), span(3))
    assert decode_spans(second) == (span(4), span(5), span(6))


def test_stopped_resend_keeps_what_it_did_not_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle: what was taken before is removed, the rest is kept, both are said; exit status 130."""
    dead_letters = bury(tmp_path, [1], [2])

    class Interrupted(Backend):
        def send(self, body: bytes) -> Reply:
            if self.sent:
                raise KeyboardInterrupt
            return super().send(body)

    monkeypatch.setattr("otel_bridge.export.transport.open_transport", lambda settings: Interrupted(HttpReply(200)))
    result = CliRunner().invoke(command, ["--state-dir", str(tmp_path)])

    assert (result.exit_code, result.output) == (130, "stopped: 1 span delivered; 1 span kept for the next time\n")
    assert left(dead_letters) == [["span 2"]]
