"""What a backend can answer, end to end: what may pass is sent again until it is taken, what is refused is kept."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otel_bridge.testing import CannedReply, Receiver, Request
from tests.export.backends import make_certificate, raw_server
from tests.faults.spans import by_id, check_same, expected, wait_for_all
from tests.faults.writing import write_sessions
from tests.real.bridge import TailProcess, run
from tests.real.ports import reserve_port
from tests.waiting import wait_until

NO_PROXY = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "")
ONE_SECOND = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one session, 39 spans."""
    path = tmp_path / "logs" / "server.log"
    write_sessions(path, 1)
    return path


def tail(folder: Path, log: Path, endpoint: str, env: Mapping[str, str] | None = None) -> TailProcess:
    """A bridge that follows `log` from its beginning."""
    return TailProcess(folder / "bridge", log, "--endpoint", endpoint, "--from", "beginning", env=env)


HTML = {"Content-Type": "text/html"}
CUT_OFF = {"Content-Type": "application/x-protobuf", "Content-Length": "100", "Connection": "close"}


@pytest.mark.parametrize(
    ("reply", "says", "env"),
    [
        pytest.param(CannedReply(503, b"no room"), "HTTP 503: no room", {}, id="503"),
        pytest.param(CannedReply(429), "HTTP 429", {}, id="429"),
        pytest.param(CannedReply(401), "HTTP 401; check --header", {}, id="401"),
        pytest.param(CannedReply(302, headers={"Location": "/login"}), "a redirect to", {}, id="302"),
        pytest.param(CannedReply(200, b"<html></html>", HTML), "no OTLP answer", {}, id="200 with HTML"),
        pytest.param(CannedReply(delay_s=600), "no answer within 1 s", ONE_SECOND, id="never answers"),
        pytest.param(CannedReply(hang_up=True), "closed without an answer", {}, id="hangs up"),
        pytest.param(CannedReply(200, b"half", CUT_OFF), "in the middle of the answer", {}, id="closes half way"),
        pytest.param(None, "connection refused", {}, id="nobody there"),
    ],
)
def test_what_may_pass_waits_and_loses_nothing(
    reply: CannedReply | None, says: str, env: dict[str, str], log: Path, tmp_path: Path
) -> None:
    """`status` says what delivery waits for; nothing counts as delivered; when it has passed, everything is there."""
    port = reserve_port()
    with tail(tmp_path, log, f"http://127.0.0.1:{port}", env) as bridge:
        bad = Receiver(lambda _: reply or CannedReply(), port=port)
        if reply is not None:
            bad.__enter__()
        try:
            wait_until(lambda: says in bridge.status.waiting_for, f"status says `{says}`")
            status = bridge.status
            assert (status.delivered_spans, status.refused_spans, status.lost_spans) == (0, 0, 0)
            assert status.lag_bytes == log.stat().st_size
            assert says in str(status.last_error["message"])
        finally:
            bad.close()
        wanted = expected(log)
        with Receiver(port=port) as good:
            wait_for_all(good, wanted)
            wait_until(lambda: bridge.status.waiting_for == "" and bridge.status.lag_bytes == 0, "status says so")
            assert bridge.status.delivered_spans == len(wanted)
            assert bridge.stop() == 0


@pytest.mark.parametrize("fault", ["unknown certificate", "unknown host"])
def test_an_address_that_cannot_work_loses_nothing(fault: str, log: Path, tmp_path: Path) -> None:
    """Nothing is dropped; a start with another address delivers all of it."""
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with raw_server(b"", tls=tls) as port:
        endpoint, says = {
            "unknown certificate": (f"https://127.0.0.1:{port}", "the certificate is not trusted"),
            "unknown host": ("http://no-such-host.invalid:4318", "the host name cannot be found"),
        }[fault]
        with tail(tmp_path, log, endpoint, NO_PROXY) as bridge:
            wait_until(lambda: says in bridge.status.waiting_for, f"status says `{says}`")
            assert bridge.status.delivered_spans == 0
            assert bridge.stop() == 0
            assert "39 spans will be sent after the next start" in bridge.output
    with Receiver() as receiver, tail(tmp_path, log, receiver.endpoint) as bridge:
        wait_for_all(receiver, expected(log))
        assert bridge.stop() == 0


def test_a_wait_that_is_asked_for_is_kept(log: Path, tmp_path: Path) -> None:
    """After a 429 with `Retry-After: 2` nothing is sent for two seconds."""
    arrived_s: list[float] = []

    def reply(_: Request) -> CannedReply:
        arrived_s.append(time.monotonic())
        return CannedReply(429, headers={"Retry-After": "2"}) if len(arrived_s) == 1 else CannedReply()

    with Receiver(reply) as receiver, tail(tmp_path, log, receiver.endpoint) as bridge:
        wait_for_all(receiver, expected(log))
        assert bridge.stop() == 0

    assert len(arrived_s) == 2
    assert arrived_s[1] - arrived_s[0] >= 2


def test_what_is_too_large_is_halved_until_it_fits(log: Path, tmp_path: Path) -> None:
    """With 413 for more than eight spans all are delivered, and none is refused."""

    def reply(request: Request) -> CannedReply:
        return CannedReply(413 if len(request.spans) > 8 else 200)

    with Receiver(reply) as receiver, tail(tmp_path, log, receiver.endpoint) as bridge:
        wait_for_all(receiver, expected(log))
        assert bridge.stop() == 0
        assert bridge.status.refused_spans == 0
    assert max(len(request.spans) for request in receiver.requests) > 8


def test_one_poisoned_span_is_refused_alone_and_sent_again_on_request(tmp_path: Path) -> None:
    """Of a request of more than 500 spans, 400 for one costs that one; `resend` delivers it when it is taken."""
    log = tmp_path / "logs" / "server.log"
    write_sessions(log, 13)
    wanted = expected(log)
    poison = sorted(wanted)[len(wanted) // 3]
    is_cured = threading.Event()

    def reply(request: Request) -> CannedReply:
        ids = {(span.trace_id, span.span_id) for span in request.spans}
        return CannedReply(400, b"bad span") if poison in ids and not is_cured.is_set() else CannedReply()

    with Receiver(reply) as receiver, tail(tmp_path, log, receiver.endpoint) as bridge:
        check_after = {key: span for key, span in wanted.items() if key != poison}
        wait_for_all(receiver, check_after)
        wait_until(lambda: bridge.status.refused_spans == 1, "status counts it")
        assert len(receiver.requests[0].spans) >= 500
        again = run("resend", "--state-dir", bridge.state_dir, "--endpoint", receiver.endpoint)
        assert (again.returncode, again.stdout) == (1, "0 spans delivered; 1 span kept for the next time\n")

        is_cured.set()
        again = run("resend", "--state-dir", bridge.state_dir, "--endpoint", receiver.endpoint)
        assert (again.returncode, again.stdout) == (0, "1 span delivered\n")
        check_same(by_id(receiver.spans), wanted)
        assert bridge.stop() == 0
        status = bridge.status
        assert (status.delivered_spans, status.refused_spans, status.lost_spans) == (len(wanted) - 1, 1, 0)
        assert status.kept.spans == 0
        assert "refused 1 span: HTTP 400: bad span; kept among the dead letters" in bridge.output


def test_a_partial_success_is_not_sent_again_but_kept(log: Path, tmp_path: Path) -> None:
    """The mark moves, the refused number is counted, and `resend` sends the request once more."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 3
    answer.partial_success.error_message = "too old"
    reply = CannedReply(200, answer.SerializeToString(), {"Content-Type": "application/x-protobuf"})
    wanted = expected(log)
    with Receiver([reply]) as receiver, tail(tmp_path, log, receiver.endpoint) as bridge:
        wait_until(lambda: bridge.status.lag_bytes == 0 and bridge.status.refused_spans, "the mark moved")
        status = bridge.status
        assert (status.delivered_spans, status.refused_spans, status.kept.spans) == (len(wanted) - 3, 3, 3)
        assert "refused 3 spans: partial success: too old" in bridge.output
        assert len(receiver.requests) == 1
        again = run("resend", "--state-dir", bridge.state_dir, "--endpoint", receiver.endpoint)
        assert (again.returncode, again.stdout) == (0, "3 spans delivered\n")
        check_same(by_id(receiver.requests[1].spans), wanted)
        assert bridge.stop() == 0
        assert bridge.status.kept.spans == 0
