"""What a gRPC backend can answer, end to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from otel_bridge.sessions.span import Span
from otel_bridge.testing import decode_spans
from tests.export.backends import grpc_server
from tests.faults.spans import Key, by_id, check_same, expected
from tests.faults.writing import write_sessions
from tests.real.bridge import TailProcess, run
from tests.real.ports import reserve_port
from tests.waiting import wait_until

Refusal = Callable[[tuple[Span, ...]], grpc.StatusCode | None]


class Backend:
    """A trace service that keeps what it takes; `refusal` says of a request's spans with which code to abort."""

    def __init__(self, refusal: Refusal = lambda spans: None, *, port: int = 0) -> None:
        self.refusal = refusal
        self.requests: list[int] = []
        self.spans: dict[Key, Span] = {}
        self.endpoint = f"http://127.0.0.1:{port}"
        self._port = port

    @contextmanager
    def serving(self) -> Iterator[Backend]:
        """Serves inside the block."""
        with grpc_server(self._answer, address=f"127.0.0.1:{self._port}") as target:
            self.endpoint = f"http://{target}"
            yield self

    def _answer(self, body: bytes, context: grpc.ServicerContext) -> bytes:
        spans = decode_spans(body)
        self.requests.append(len(spans))
        code = self.refusal(spans)
        if code is not None:
            context.abort(code, "not today")
        self.spans |= by_id(spans)
        return b""


def tail(folder: Path, log: Path, endpoint: str) -> TailProcess:
    """A bridge that follows `log` from its beginning and exports by gRPC."""
    return TailProcess(folder / "bridge", log, "--endpoint", endpoint, "--protocol", "grpc", "--from", "beginning")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one session, 39 spans."""
    path = tmp_path / "logs" / "server.log"
    write_sessions(path, 1)
    return path


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (grpc.StatusCode.UNAVAILABLE, "gRPC UNAVAILABLE: not today"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "gRPC RESOURCE_EXHAUSTED: not today"),
        (grpc.StatusCode.UNAUTHENTICATED, "gRPC UNAUTHENTICATED: not today; check --header"),
        (None, "gRPC UNAVAILABLE"),
    ],
    ids=["UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "nobody there"],
)
def test_what_may_pass_waits_and_loses_nothing(
    code: grpc.StatusCode | None, says: str, log: Path, tmp_path: Path
) -> None:
    """`status` says what delivery waits for; nothing counts as delivered; when it has passed, everything is there."""
    backend = Backend(lambda spans: code, port=reserve_port())
    wanted = expected(log)
    with tail(tmp_path, log, backend.endpoint) as bridge:
        if code is None:
            wait_until(lambda: says in bridge.status.waiting_for, f"status says `{says}`")
        else:
            with backend.serving():
                wait_until(lambda: says in bridge.status.waiting_for, f"status says `{says}`")
        assert bridge.status.delivered_spans == bridge.status.refused_spans == 0
        backend.refusal = lambda spans: None
        with backend.serving():
            wait_until(lambda: bridge.status.lag_bytes == 0, "all is delivered", 60)
            check_same(backend.spans, wanted)
            assert bridge.status.delivered_spans == len(wanted)
            assert bridge.stop() == 0


def test_what_is_too_large_is_halved_until_it_fits(log: Path, tmp_path: Path) -> None:
    """With OUT_OF_RANGE or RESOURCE_EXHAUSTED for more than eight spans all are delivered, and none is refused."""
    codes = iter([grpc.StatusCode.OUT_OF_RANGE])
    too_many = lambda spans: next(codes, grpc.StatusCode.RESOURCE_EXHAUSTED) if len(spans) > 8 else None  # noqa: E731
    with Backend(too_many).serving() as backend, tail(tmp_path, log, backend.endpoint) as bridge:
        wait_until(lambda: bridge.status.lag_bytes == 0 and bridge.status.delivered_spans, "all is delivered")
        check_same(backend.spans, expected(log))
        assert bridge.stop() == 0
        assert bridge.status.refused_spans == 0
    assert max(backend.requests) > 8


def test_one_poisoned_span_is_refused_alone_and_sent_again_on_request(tmp_path: Path) -> None:
    """Of a request of more than 500 spans, INVALID_ARGUMENT for one costs that one; `resend` delivers it later."""
    log = tmp_path / "logs" / "server.log"
    write_sessions(log, 13)
    wanted = expected(log)
    poison = sorted(wanted)[len(wanted) // 3]
    is_cured = threading.Event()

    def refusal(spans: tuple[Span, ...]) -> grpc.StatusCode | None:
        is_bad = poison in by_id(spans) and not is_cured.is_set()
        return grpc.StatusCode.INVALID_ARGUMENT if is_bad else None

    with Backend(refusal).serving() as backend, tail(tmp_path, log, backend.endpoint) as bridge:
        wait_until(lambda: bridge.status.lag_bytes == 0 and bridge.status.refused_spans, "the mark moved", 60)
        check_same(backend.spans, {key: span for key, span in wanted.items() if key != poison})
        assert backend.requests[0] >= 500
        is_cured.set()
        words = ("--state-dir", bridge.state_dir, "--endpoint", backend.endpoint, "--protocol", "grpc")
        again = run("resend", *words)
        assert (again.returncode, again.stdout) == (0, "1 span delivered\n")
        check_same(backend.spans, wanted)
        assert bridge.stop() == 0
        status = bridge.status
        assert (status.delivered_spans, status.refused_spans, status.kept.spans) == (len(wanted) - 1, 1, 0)
        assert "refused 1 span: gRPC INVALID_ARGUMENT: not today; kept among the dead letters" in bridge.output
