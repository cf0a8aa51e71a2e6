"""The whole compose file, run without Docker: what the agent did is what the backends show."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real.jaeger import tags
from tests.stack.compose import PROJECT
from tests.stack.prometheus import Prometheus
from tests.stack.without_docker import Stack
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.real("compose", "server", "collector", "jaeger", "prometheus"),
    pytest.mark.xdist_group("stack"),
    # The first test waits for nine programs and a minute of an agent's work, on a machine that may be busy.
    pytest.mark.timeout(300),
]

SESSIONS = 4
"""One for each of the agent's plans."""
JAEGER_PORT = 16686
CALLS = "traces_span_metrics_calls_total"
TOOL = 'span_kind="SPAN_KIND_SERVER"'
LIFETIME = 'span_name="debug_session lifetime"'

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Ran:
    """The stack after the agent went through its plans, with all of it in the backends; `calls` is its own record."""

    stack: Stack
    calls: tuple[Mapping[str, Any], ...]
    prometheus: Prometheus

    @property
    def session_ids(self) -> set[str]:
        """The sessions that the agent made."""
        return {call["sessionId"] for call in self.calls}

    def trace(self, service: str, session_id: str) -> Mapping[str, Any]:
        """A session's trace as the Jaeger of a service shows it, empty when it has none."""
        url = f"{self.stack.url(service, JAEGER_PORT)}/api/traces/{session_id.replace('-', '')}"
        try:
            with _direct.open(url, timeout=10) as reply:
                return dict(json.load(reply)["data"][0])
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise
            return {}

    def span_names(self, service: str, session_id: str) -> Counter[str]:
        """The names of the spans of a session."""
        return Counter(span["operationName"] for span in self.trace(service, session_id).get("spans", []))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """The stack with the Grafana profile, at the time when all that the agent did is in the backends."""
    arguments = {"agent": ["--sessions", str(SESSIONS), "--think-s", "0.05"]}
    with Stack(tmp_path_factory.mktemp("stack"), ["grafana"], arguments) as stack:
        agent = stack.programs["agent"]
        wait_until(lambda: not agent.running, "the agent is through its plans", 90)
        assert agent.process is not None
        assert agent.process.returncode == 0, agent.output[-4000:]
        calls = tuple(json.loads(line) for line in agent.output.splitlines())
        ran = Ran(stack, calls, Prometheus(stack.url("prometheus", 9090)))
        over = Counter({"debug_session lifetime": 1})
        for session_id in ran.session_ids:
            for service in ("jaeger", "tempo"):
                wait_until(lambda: over <= ran.span_names(service, session_id), f"{service} has all of {session_id}")  # noqa: B023
        wait_until(lambda: counted(ran, LIFETIME) == SESSIONS, "Prometheus has counted all sessions")
        # A new series is 0 for one flush, so that Prometheus sees it rise.
        wait_until(lambda: counted(ran, TOOL) >= len(calls), "Prometheus has counted all calls")
        yield ran


def counted(ran: Ran, matchers: str) -> float:
    """How many spans the metrics have counted."""
    return sum(value for _, value in ran.prometheus.instant(f"{CALLS}{{{matchers}}}"))


def test_every_call_of_every_session_is_in_jaeger(ran: Ran) -> None:
    """Each session of the agent is a trace with a root, and with each of its calls once and no other."""
    assert len(ran.session_ids) == SESSIONS
    for session_id in ran.session_ids:
        names = ran.span_names("jaeger", session_id)
        made = Counter(f"tools/call {call['tool']}" for call in ran.calls if call["sessionId"] == session_id)

        assert Counter({name: n for name, n in names.items() if name.startswith("tools/call ")}) == made
        assert names["debug_session python"] == names["debug_session lifetime"] == 1


def test_jaeger_warns_of_nothing(ran: Ran) -> None:
    """No span of any session has a warning of Jaeger's: no parent is missing, no clock was adjusted."""
    warnings = [
        warning
        for session_id in ran.session_ids
        for span in ran.trace("jaeger", session_id)["spans"]
        for warning in span["warnings"] or []
    ]

    assert warnings == []


def test_a_failed_call_is_an_error_span(ran: Ran) -> None:
    """The start of a program that is not there is a span with status ERROR and the server's code; the next is not."""
    started = [call for call in ran.calls if call["tool"] == "start_debugging"]
    (session_id,) = {call["sessionId"] for call in started if not call["success"]}

    spans = sorted(ran.trace("jaeger", session_id)["spans"], key=lambda span: int(span["startTime"]))
    starts = [tags(span) for span in spans if span["operationName"] == "tools/call start_debugging"]
    assert [(start.get("error"), start.get("error.type")) for start in starts] == [(True, "-32602"), (None, None)]


def test_both_bridges_give_the_same_traces(ran: Ran) -> None:
    """What came by the second bridge and collector to Tempo's place has the ids and names of what is in Jaeger."""

    def spans(service: str, session_id: str) -> set[tuple[str, str]]:
        return {(span["spanID"], span["operationName"]) for span in ran.trace(service, session_id)["spans"]}

    for session_id in ran.session_ids:
        assert spans("tempo", session_id) == spans("jaeger", session_id)


def test_metrics_count_each_call_once(ran: Ran) -> None:
    """The span metrics in Prometheus count as many calls of each tool as the agent made."""
    made = Counter(call["tool"] for call in ran.calls)
    by_tool = ran.prometheus.instant(f"sum by (gen_ai_tool_name) ({CALLS}{{{TOOL}}})")

    assert {labels["gen_ai_tool_name"]: value for labels, value in by_tool} == made


def test_no_metric_has_a_label_of_many_values(ran: Ran) -> None:
    """Series are by service, span, tool, error class, language and end: no id, file or expression makes one."""
    labels = {name for series, _ in ran.prometheus.instant(CALLS) for name in series}

    assert labels == {
        *("__name__", "instance", "job", "service_name", "span_kind", "span_name", "status_code"),
        *("gen_ai_tool_name", "error_type", "debug_session_language", "debug_session_end_reason"),
    }


def test_exemplars_lead_to_the_sessions(ran: Ran) -> None:
    """The exemplars of the tools' durations are spans of the agent's sessions."""
    exemplars = ran.prometheus.exemplars(f"traces_span_metrics_duration_seconds_bucket{{{TOOL}}}")

    trace_ids = {session_id.replace("-", "") for session_id in ran.session_ids}
    assert exemplars
    assert {exemplar["trace_id"] for exemplar in exemplars} <= trace_ids
    for exemplar in exemplars[:5]:
        spans = ran.trace("jaeger", exemplar["trace_id"])["spans"]
        assert exemplar["span_id"] in {span["spanID"] for span in spans}


def panel_queries() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every query of every panel of every dashboard, with a name."""
    for path in sorted(Path(PROJECT, "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for query in panel["targets"]:
                yield f"{path.stem}: {panel['title']} {query['refId']}", query


QUERIES = dict(panel_queries())


@pytest.mark.parametrize("name", QUERIES)
def test_dashboard_query_returns_data(ran: Ran, name: str) -> None:
    """Each query of the dashboards returns numbers after the agent's work, and its exemplars where it asks for them."""
    query = QUERIES[name]
    if query["instant"]:
        values = [value for _, value in ran.prometheus.instant(query["expr"])]
    else:
        values = [value for _, series in ran.prometheus.over_time(query["expr"]) for value in series]

    assert any(value > 0 for value in values if not math.isnan(value))
    if query.get("exemplar"):
        assert ran.prometheus.exemplars(query["expr"])


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1:3001", 400), ("localhost:3001", 400), ("server:3001", 403)])
def test_server_answers_its_own_loopback_names_alone(ran: Ran, host: str, status: int) -> None:
    """The host name that compose makes the agent send gets past the server's check; the service's own name does not."""
    request = urllib.request.Request(f"{ran.stack.url('server', 3001)}/mcp", b"{}", {"Host": host}, method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        _direct.open(request, timeout=10)

    refused.value.close()
    assert refused.value.code == status


def test_agent_sends_a_host_name_that_the_server_allows(ran: Ran) -> None:
    """In the compose file the agent is on the server's loopback, and addresses it by it."""
    agent = ran.stack.services["agent"]

    assert agent.network == "server"
    assert agent.command[0] == "http://127.0.0.1:3001/mcp"
