"""What logging an entry costs the program that does it.

The same logging goes into a `NullHandler` and into a `BridgeHandler`, in turn, several times over; the difference of
the medians is what the bridge adds. Processor time is that of the host's thread alone; time by the clock is also what
it waits for the interpreter while the bridge's threads have it, in a program that does nothing but log. The backend is
a process of its own. On a busy machine the clock counts other programs as well: look at the processor time then.
"""

from __future__ import annotations

import gc
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.report import Plan, Row
from otel_bridge import BridgeHandler
from otel_bridge.testing import session_entries

ROUNDS = 9
SESSIONS = 600
MOST_US = 10
Entry = dict[str, object]
Way = Callable[[logging.Logger, Entry], None]


def by_extra(logger: logging.Logger, entry: Entry) -> None:
    """The fields by `extra=`."""
    logger.info(entry["message"], extra=entry["extra"])  # type: ignore[arg-type]


def by_mapping(logger: logging.Logger, entry: Entry) -> None:
    """The whole entry as the message."""
    logger.info(entry["mapping"])


def by_text(logger: logging.Logger, entry: Entry) -> None:
    """JSON text as the message."""
    logger.info(entry["text"])


def by_prose(logger: logging.Logger, entry: Entry) -> None:
    """No entry at all, as most of what a program logs."""
    logger.info("GET /%s", "x")


WAYS: dict[str, Way] = {"extra=": by_extra, "mapping": by_mapping, "JSON text": by_text, "no entry": by_prose}


def entries(sessions: int) -> list[Entry]:
    """Entries of many sessions, each in every form that is measured."""
    out: list[Entry] = []
    for number in range(sessions):
        for entry in session_entries(f"7d2c4b10-5f3e-4a86-9c1d-{number:012x}", f"session {number}"):
            extra = {name: value for name, value in entry.items() if name != "message"}
            out.append({"message": entry["message"], "extra": extra, "mapping": entry, "text": json.dumps(entry)})
    return out


@contextmanager
def logger_with(handler: logging.Handler) -> Iterator[logging.Logger]:
    """A logger with this handler alone."""
    logger = logging.Logger("benchmark", logging.INFO)
    logger.addHandler(handler)
    try:
        yield logger
    finally:
        handler.close()


def cost_us(handler: logging.Handler, way: Way, given: list[Entry]) -> tuple[float, float]:
    """Microseconds an entry: of the host's processor time, and of the clock on its wall."""
    with logger_with(handler) as logger:
        gc.collect()
        started, cpu = time.perf_counter(), time.thread_time()
        for entry in given:
            way(logger, entry)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - started
    return cpu / len(given) * 1e6, wall / len(given) * 1e6


def bridge_us(endpoint: str, given: list[Entry]) -> float:
    """Microseconds of processor time an entry that the bridge's own threads take, until all is delivered."""
    with logger_with(handler := BridgeHandler(endpoint=endpoint)) as logger:
        host, process = time.thread_time(), time.process_time()
        for entry in given:
            by_extra(logger, entry)
        handler.bridge.flush(60)
        host, process = time.thread_time() - host, time.process_time() - process
    return (process - host) / len(given) * 1e6


@contextmanager
def backend() -> Iterator[str]:
    """A backend in a process of its own; gives its endpoint."""
    program = "from otel_bridge.testing import Receiver\nwith Receiver() as r: print(r.endpoint, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
        process.communicate(b"\n")


def measure(plan: Plan) -> Iterator[Row]:
    """Each way of logging, and what the bridge's own threads take; microseconds an entry."""
    plan.say("handler: logging, with the bridge and without")
    given = entries(plan.choose(SESSIONS, 20))
    with backend() as endpoint:
        for name, way in WAYS.items():
            plain, bridged = [], []
            for _ in range(plan.choose(ROUNDS, 1)):
                plain.append(cost_us(logging.NullHandler(), way, given))
                bridged.append(cost_us(BridgeHandler(endpoint=endpoint), way, given))
            (cpu, wall), (cpu_bridged, wall_bridged) = medians(plain), medians(bridged)
            what = f"`BridgeHandler`, {name}: added to a log call"
            yield Row(f"{what}, CPU", "µs", cpu_bridged - cpu, plain=cpu, most=MOST_US)
            yield Row(f"{what}, by the clock", "µs", wall_bridged - wall)
        own = bridge_us(endpoint, given)
    yield Row("`BridgeHandler`: CPU of its own threads an entry, until delivered", "µs", own)


def medians(measured: list[tuple[float, float]]) -> tuple[float, float]:
    """The medians of processor time and of the clock's."""
    return statistics.median(cpu for cpu, _ in measured), statistics.median(wall for _, wall in measured)
