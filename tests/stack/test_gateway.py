"""Many machines: bridges, agents that balance by trace, gateways that sample.

The collectors are v0.161.0, the newest whose load_balancing exporter and tail_sampling processor can be built here.
There is no Kafka here either: behind each gateway, in the place of its `kafka` exporter and with its queue, is OTLP to
a receiver of the test.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from otel_bridge.testing import Receiver
from tests.real.bridge import TailProcess, run
from tests.stack.collectors import Config, PlacedCollector
from tests.stack.places import Places
from tests.stack.sessions import LoggedSession
from tests.waiting import wait_until

pytestmark = [pytest.mark.real("gateway"), pytest.mark.xdist_group("stack"), pytest.mark.timeout(300)]

HALF = {"GATEWAY_SAMPLING_PERCENTAGE": "50"}
UNREMARKABLE = 24
REMARKABLE = ("early", "failed", "slow", "unanswered")
MACHINES = ("1", "2")

Traces = dict[int, set[int]]
"""The span ids of each trace."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came behind each gateway, what all the logs hold, and which sessions are which."""

    behind: tuple[Traces, Traces]
    whole: Traces
    remarkable: dict[str, int]
    unremarkable: set[int]


def traces(receiver: Receiver) -> Traces:
    """The spans that a receiver has."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for span in receiver.spans:
        found[span.trace_id].add(span.span_id)
    return dict(found)


def to_receiver(receiver: Receiver) -> Callable[[Config], None]:
    """A change of gateway.yaml that puts a receiver in Kafka's place."""

    def change(config: Config) -> None:
        kafka = config["exporters"].pop("kafka")
        kept = {key: kafka[key] for key in ("sending_queue", "retry_on_failure")}
        config["exporters"]["otlp_http"] = {"endpoint": receiver.endpoint, **kept}
        config["service"]["pipelines"]["traces"]["exporters"] = ["otlp_http"]

    return change


def write_sessions(folder: Path) -> Iterator[dict[str, list[LoggedSession]]]:
    """Writes the sessions of two machines: begun at the first step, gone wrong or not and over at the second.

    Each machine has some of each kind that is to be kept and half of the others; one of these both have. The early ones
    fail and end in the first step. All are two hours old, but for a last one: that gap ends what is still open.
    """
    ids = (uuid.uuid5(uuid.NAMESPACE_DNS, f"session {number}") for number in range(1000))
    now_ms = int(time.time() * 1000)
    begin_ms = now_ms - 2 * 3600 * 1000
    sessions: dict[str, list[LoggedSession]] = defaultdict(list)
    for machine in MACHINES:
        log = folder / f"machine-{machine}.log"
        kinds = [*REMARKABLE, *["early"] * 3, *["unremarkable"] * (UNREMARKABLE // 2)]
        for number, kind in enumerate(kinds):
            sessions[kind].append(LoggedSession(log, str(next(ids)), begin_ms + 100 * number))
    shared = sessions["unremarkable"][0]
    sessions["unremarkable"].append(LoggedSession(folder / "machine-2.log", shared.session_id, shared.time_ms))
    everyone = [session for group in sessions.values() for session in group]
    for session in everyone:
        session.begin()
    for session in sessions["early"]:
        session.fail("start_debugging")
        session.end()
    yield sessions
    for session in sessions["failed"]:
        session.fail("evaluate_expression")
    for session in sessions["slow"]:
        session.call("continue_execution", takes_ms=11_000)
    for session in sessions["unanswered"]:
        session.leave("step_over")
    for session in everyone:
        if session not in sessions["early"]:
            session.call("get_stack_trace")
            session.end()
    for machine in MACHINES:
        last = LoggedSession(folder / f"machine-{machine}.log", str(next(ids)), now_ms - 60_000)
        last.begin()
        last.end()
        sessions["unremarkable"].append(last)
    yield sessions


def wait_delivered(bridges: Iterable[TailProcess]) -> None:
    """Waits until each bridge has delivered all of its log."""
    for bridge in bridges:

        def delivered(bridge: TailProcess = bridge) -> bool:
            assert bridge.running, bridge.output
            status = json.loads(run("status", "--json", "--state-dir", bridge.state_dir).stdout)
            return bool(status["files"]) and status["lag_bytes"] == 0

        wait_until(delivered, f"{bridge.log.parent.name} has delivered its log")


@pytest.fixture(scope="module")
def gone_through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Sessions of two machines after they went through the gateways."""
    folder = tmp_path_factory.mktemp("gateway")
    hosts = [f"{what}-{machine}" for what in ("agent", "gateway") for machine in MACHINES]
    places = Places({host: host for host in [*hosts, "kafka"]})
    steps = write_sessions(folder)
    sessions = next(steps)
    with ExitStack() as opening:
        receivers = [opening.enter_context(Receiver()) for _ in MACHINES]
        for machine, receiver in zip(MACHINES, receivers, strict=True):
            gateway = PlacedCollector(
                folder / f"gateway-{machine}",
                f"gateway-{machine}",
                "gateway.yaml",
                places,
                program="gateway",
                change=to_receiver(receiver),
                env=HALF,
            )
            opening.enter_context(gateway)
        bridges = []
        for machine in MACHINES:
            agent = PlacedCollector(
                folder / f"agent-{machine}", f"agent-{machine}", "gateway-agent.yaml", places, program="gateway"
            )
            opening.enter_context(agent)
            log = folder / f"machine-{machine}.log"
            bridge = TailProcess(folder / f"bridge-{machine}", log, "--endpoint", agent.endpoint, "--from", "beginning")
            bridges.append(opening.enter_context(bridge))
        remarkable = {
            f"{kind} {number}": uuid.UUID(session.session_id).int
            for kind in REMARKABLE
            for number, session in enumerate(sessions[kind], 1)
        }

        def settled(wanted: set[int]) -> tuple[Traces, Traces] | None:
            first, second = map(traces, receivers)
            came = first | second
            return (first, second) if all(came.get(trace) == whole[trace] for trace in wanted | set(came)) else None

        # Gateways that have decided on these sessions would have decided on the others of the first step as well.
        wait_delivered(bridges)
        early = {trace_id for name, trace_id in remarkable.items() if name.startswith("early")}
        wait_until(lambda: early <= {trace for receiver in receivers for trace in traces(receiver)}, "early ones came")
        next(steps)
        wait_delivered(bridges)
        whole = replayed(folder)
        behind = wait_until(lambda: settled(set(remarkable.values())), "each session that is to be kept came whole")
        unremarkable = {uuid.UUID(session.session_id).int for session in sessions["unremarkable"]}
        yield Run(behind, whole, remarkable, unremarkable)


def replayed(folder: Path) -> Traces:
    """What the logs hold in all."""
    with Receiver() as receiver:
        for log in sorted(folder.glob("machine-*.log")):
            assert run("replay", log, "--endpoint", receiver.endpoint).returncode == 0
        return traces(receiver)


def test_each_trace_is_whole_in_exactly_one_gateway(gone_through: Run) -> None:
    """No trace came by both gateways, though both agents sent to both, and what came is all that the logs have."""
    first, second = gone_through.behind

    assert first
    assert second
    assert not set(first) & set(second)
    for trace_id, span_ids in (first | second).items():
        assert span_ids == gone_through.whole[trace_id]


def test_what_is_remarkable_is_kept(gone_through: Run) -> None:
    """Sessions with an error, a slow call or a call that was never answered are kept, with what came before it."""
    first, second = gone_through.behind

    kept = {name for name, trace_id in gone_through.remarkable.items() if trace_id in first | second}
    assert kept == set(gone_through.remarkable)


def test_a_share_of_the_rest_is_kept(gone_through: Run) -> None:
    """Of the others, about as many as the configuration says are kept; no session is kept for taking minutes in all."""
    first, second = gone_through.behind

    kept = gone_through.unremarkable & set(first | second)
    assert UNREMARKABLE / 4 < len(kept) < UNREMARKABLE * 3 / 4
