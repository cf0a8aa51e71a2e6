"""The bridge when its process ends, forks, or is a child of `multiprocessing`: real processes against a receiver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from otel_bridge import Bridge, Span, convert
from otel_bridge.export.console_transport import ConsoleTransport
from otel_bridge.inprocess import lifetimes, target
from otel_bridge.settings import ExportSettings
from otel_bridge.testing import CapturingExporter, Receiver, session_entries
from tests.export.backends import grpc_server
from tests.inprocess.programs import lines_of

DEADLINE_S = 60.0
PRELUDE = """
import logging, os, sys, threading
from otel_bridge import Bridge, BridgeHandler
from otel_bridge.testing import session_entries

def log(session_id, entries=slice(None), to=logging.getLogger("program")):
    for entry in session_entries(session_id, session_id)[entries]:
        fields = dict(entry)
        to.info(fields.pop("message"), extra=fields)

logging.getLogger("program").setLevel(logging.INFO)
"""
HANDLER = PRELUDE + 'logging.getLogger("program").addHandler(BridgeHandler())\n'


def run(program: str, endpoint: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A program of its own, ended; it exports to `endpoint` by the environment."""
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "PYTHONWARNINGS": "ignore::DeprecationWarning", **environ}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | variables,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def whole(*session_ids: str) -> Counter[Span]:
    """The spans of whole small sessions."""
    return arrived([span for one in session_ids for span in convert(lines_of(session_entries(one, one)))])


def arrived(spans: list[Span]) -> Counter[Span]:
    """Spans by their content; Span holds dictionaries, so by its text."""
    return Counter(map(repr, spans))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit(3)",
        "raise RuntimeError('as programs do')",
        "import atexit; atexit.register(log, 's-2')",
        "threading.Thread(target=log, args=('s-2',)).start()",
    ],
)
def test_the_end_of_a_program_delivers_what_it_logged(end: str) -> None:
    """However it ends, also what its last threads and exit handlers log."""
    with Receiver() as receiver:
        done = run(HANDLER + "log('s-1')\n" + end, receiver.endpoint)

    sessions = ("s-1", "s-2") if "s-2" in end else ("s-1",)
    assert (arrived(receiver.arrived), done.stdout) == (whole(*sessions), "")
    if "raise" not in end:
        assert done.stderr == ""


def test_a_bridge_without_a_handler_is_closed_at_the_end_too() -> None:
    """Nobody has to call `close`."""
    program = """
    bridge = Bridge()
    for entry in session_entries("s-1", "s-1"):
        bridge.feed(entry)
    """
    with Receiver() as receiver:
        done = run(PRELUDE + textwrap.dedent(program), receiver.endpoint)

    assert done.stderr == ""
    assert arrived(receiver.arrived) == whole("s-1")


def test_an_open_session_ends_with_its_program() -> None:
    """The last words of the program are the end of its sessions."""
    with Receiver() as receiver:
        run(HANDLER + "log('s-1', slice(-3))", receiver.endpoint)

    (lifetime,) = [span for span in receiver.spans if "lifetime" in span.name]
    assert lifetime.attributes["debug.session.end_reason"] == "not_closed"


def test_a_dead_backend_does_not_keep_a_program_from_ending() -> None:
    """The exit waits for a few seconds at most, and says what is lost."""
    with Receiver() as receiver:
        nobody = receiver.endpoint
    done = run(HANDLER + "log('s-1'); log('s-2')", nobody)

    assert done.returncode == 0
    assert "spans without an answer at the end, they are lost (connection refused): 16" in done.stderr


def test_a_forked_child_sends_its_own_and_not_its_parents() -> None:
    """Each span once: what the parent had queued is the parent's, what the child logs is the child's."""
    program = """
    log("s-parent")
    child = os.fork()
    log("s-child" if child == 0 else "s-after")
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    with Receiver() as receiver:
        done = run(HANDLER + textwrap.dedent(program), receiver.endpoint)

    assert (done.returncode, done.stderr) == (0, "")
    assert arrived(receiver.arrived) == whole("s-parent", "s-after", "s-child")


def test_a_childs_entries_join_the_session_that_the_parent_began() -> None:
    """No second root: what the child says of the parent's session is in its trace, with a lifetime of its own."""
    program = """
    log("s-shared", slice(0, 6))
    child = os.fork()
    if child == 0:
        log("s-shared", slice(10, 13))
    else:
        _, status = os.waitpid(child, 0)
        log("s-shared", slice(13, None))
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    with Receiver() as receiver:
        done = run(HANDLER + textwrap.dedent(program), receiver.endpoint)

    assert (done.returncode, done.stderr) == (0, "")
    names = Counter(span.name for span in receiver.arrived)
    assert (names["debug_session python"], names["debug_session lifetime"]) == (1, 2)
    assert names["tools/call evaluate_expression"] == 1
    assert len({(span.trace_id, span.span_id) for span in receiver.arrived}) == len(receiver.arrived)


def test_forking_in_the_middle_of_everything_neither_hangs_nor_sends_twice() -> None:
    """Threads log while children are forked; each child logs and ends, and every span comes exactly once."""
    program = """
    is_over = threading.Event()
    def go_on(name):
        number = 0
        while not is_over.is_set() or number < 5:
            log(f"{name}-{number}")
            number += 1
            is_over.wait(0.02)
        counts[name] = number
    counts = {}
    threads = [threading.Thread(target=go_on, args=(f"t{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for number in range(12):
        child = os.fork()
        if child == 0:
            log(f"child-{number}")
            logging.shutdown()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
    is_over.set()
    for thread in threads:
        thread.join()
    print(" ".join(f"{name}-{number}" for name in counts for number in range(counts[name])))
    """
    with Receiver() as receiver:
        done = run(HANDLER + textwrap.dedent(program), receiver.endpoint)

    assert (done.returncode, done.stderr) == (0, "")
    sessions = [*done.stdout.split(), *(f"child-{number}" for number in range(12))]
    assert arrived(receiver.arrived) == whole(*sessions)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_multiprocessing_delivers_at_its_end(method: str, tmp_path: Path) -> None:
    """Such a child ends without running exit handlers; what it logged is delivered all the same."""
    script = tmp_path / "program.py"
    script.write_text(
        HANDLER
        + textwrap.dedent(f"""
        if __name__ == "__main__":
            import multiprocessing
            log("s-parent")
            child = multiprocessing.get_context("{method}").Process(target=log, args=("s-child",))
            child.start()
            child.join()
            sys.exit(child.exitcode)
        """)
    )
    with Receiver() as receiver:
        done = run(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", receiver.endpoint)

    assert (done.returncode, done.stderr) == (0, "")
    assert arrived(receiver.arrived) == whole("s-parent", "s-child")


SERVER = """
children = []
for number in range(3):
    children.append(os.fork())
    if children[-1] == 0:
        log(f"s-{number}")
        sys.exit(0)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""
"""As servers that fork their workers: the parent never logs, each child has a thread and connection of its own."""


def test_a_bridge_of_before_the_fork_serves_its_children() -> None:
    """What the parent never used, each child can use."""
    with Receiver() as receiver:
        done = run(HANDLER + SERVER, receiver.endpoint)

    assert (done.returncode, done.stderr) == (0, "")
    assert arrived(receiver.arrived) == whole("s-0", "s-1", "s-2")


@pytest.mark.parametrize("program", [SERVER, "log('s-parent')" + SERVER])
def test_grpc_serves_a_process_and_its_forked_children(program: str) -> None:
    """Each child opens a channel of its own, whether the parent has used its own or not."""
    bodies: list[bytes] = []

    def keep(body: bytes, _: object) -> bytes:
        bodies.append(body)
        return b""

    with grpc_server(keep) as address:
        done = run(HANDLER + program, f"http://{address}", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")

    assert (done.returncode, done.stderr) == (0, "")
    assert [name in b"".join(bodies) for name in (b"s-0", b"s-1", b"s-2")] == [True] * 3


def test_a_fork_waits_for_a_moment_when_nothing_changes() -> None:
    """While a process forks, neither the queue nor the mapping can be in the middle of something."""

    def both(bridge: Bridge) -> list[bool]:
        assert bridge._worker is not None
        free = []
        for lock in (bridge._intake.lock, bridge._worker.mapping_lock):
            free.append(lock.acquire(blocking=False))
            if free[-1]:
                lock.release()
        return free

    with Bridge(CapturingExporter()) as bridge, ThreadPoolExecutor(1) as other:
        bridge.feed(session_entries()[0])
        assert bridge.flush()
        lifetimes._before_fork()
        during = other.submit(both, bridge).result()
        lifetimes._after_fork_in_parent()
        after = other.submit(both, bridge).result()

    assert (during, after) == ([False, False], [True, True])


def test_a_child_makes_a_connection_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its parent made and never used could still be the parent's to use."""
    opened: list[object] = []

    def open_transport(settings: ExportSettings) -> ConsoleTransport:
        opened.append(settings)
        return ConsoleTransport()

    monkeypatch.setattr(target, "open_transport", open_transport)
    bridge = Bridge(endpoint="http://localhost:4318")
    before = len(opened)
    lifetimes._before_fork()
    lifetimes._after_fork_in_child()
    bridge.feed(session_entries()[0])
    bridge.flush()
    bridge.close()

    assert (before, len(opened)) == (1, 2)


def test_an_entry_in_a_signal_handler_cannot_stop_the_program() -> None:
    """A signal comes in the middle of logging, on the same thread, again and again."""
    program = """
    import signal
    def on_signal(number, frame):
        log("s-signal", slice(1, 2))
    signal.signal(signal.SIGALRM, on_signal)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    for number in range(300):
        log("s-1", slice(1, 2))
    signal.setitimer(signal.ITIMER_REAL, 0)
    handler = logging.getLogger("program").handlers[0]
    handler.close()
    print(handler.bridge.statistics().malformed + handler.bridge.statistics().dropped)
    """
    with Receiver() as receiver:
        done = run(HANDLER + textwrap.dedent(program), receiver.endpoint)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_ten_thousand_entries_with_a_dead_backend_stall_nobody() -> None:
    """Each entry is kept in the queue or counted as dropped, which is said once and once more at the end."""
    program = """
    handler = logging.getLogger("program").handlers[0]
    fields = {"tool": "step_over", "sessionId": "s-1", "sessionName": "demo", "request": {"sessionId": "s-1"}}
    for number in range(10_000):
        logging.getLogger("program").info("tool:call", extra=fields)
    now = handler.bridge.statistics()
    assert (now.entries, now.dropped, now.malformed) == (10_000, 0, 0), now
    for number in range(20_000):
        logging.getLogger("program").info("tool:call", extra=fields)
    now = handler.bridge.statistics()
    assert now.entries + now.dropped == 30_000, now
    print(now.dropped)
    """
    with Receiver() as receiver:
        nobody = receiver.endpoint
    done = run(HANDLER + textwrap.dedent(program), nobody)

    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "entries dropped" in line]
    assert (int(done.stdout) > 0) == (len(said) > 0)
    assert len(said) <= 2


def test_a_terminated_program_that_exits_by_itself_delivers() -> None:
    """SIGTERM turned into an exit, as servers do it, is an end like any other."""
    program = """
    import signal, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    log("s-1")
    os.kill(os.getpid(), signal.SIGTERM)
    """
    with Receiver() as receiver:
        done = run(HANDLER + textwrap.dedent(program), receiver.endpoint)

    assert done.returncode in (0, -signal.SIGTERM)
    assert arrived(receiver.arrived) == whole("s-1")
