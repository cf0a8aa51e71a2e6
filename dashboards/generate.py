"""Makes the dashboards: `python dashboards/generate.py` writes them here, `--check` says whether they are current.

All queries are on what the collector's span_metrics connector makes of the spans (collector-config/grafana.yaml):
`traces_span_metrics_calls_total` and the histogram `traces_span_metrics_duration_seconds`, which count a span when it
arrives. Panels with exemplars link to traces: Grafana's Prometheus data source knows where (deploy/grafana).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from grafana_foundation_sdk.builders import bargauge, piechart, stat, timeseries
from grafana_foundation_sdk.builders.common import ReduceDataOptions, StackingConfig, VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink, QueryVariable
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
)
from grafana_foundation_sdk.models.piechart import PieChartLabels
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

HERE = Path(__file__).parent
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="prometheus")
TAG = "otel-bridge"

CALLS = "traces_span_metrics_calls_total"
SECONDS = "traces_span_metrics_duration_seconds"

# Span names and kinds as the bridge gives them. A root is named after its language, so it is what these others are not.
TOOL = 'span_kind="SPAN_KIND_SERVER"'
FAILED = f'{TOOL}, status_code="STATUS_CODE_ERROR"'
ROOT = 'span_name=~"debug_session .+", span_name!~"debug_session (lifetime|events?)"'
LIFETIME = 'span_name="debug_session lifetime"'
STATES = 'span_name=~"debuggee (initializing|paused|running)"'
STATE_NAME = '"state", "$1", "span_name", "debuggee (.+)"'

RATE = "$__rate_interval"
RANGE = "$__range"


def series(metric: str, matchers: str) -> str:
    """A selector of the services that the dashboard shows."""
    return f'{metric}{{service_name=~"$service", {matchers}}}'


def count(matchers: str, window: str, by: str = "") -> str:
    """How many spans came in a window, by a label or in all."""
    return f"sum {f'by ({by}) ' if by else ''}(increase({series(CALLS, matchers)}[{window}]))"


def quantile(share: float, matchers: str, by: str = "") -> str:
    """The duration in seconds below which a share of the spans is, by a label or in all."""
    labels = f"le, {by}" if by else "le"
    rate = f"rate({series(f'{SECONDS}_bucket', matchers)}[{RATE}])"
    return f"histogram_quantile({share}, sum by ({labels}) ({rate}))"


def state_seconds(window: str, function: str) -> str:
    """Seconds that programs spent in each state."""
    summed = f"sum by (span_name) ({function}({series(f'{SECONDS}_sum', STATES)}[{window}]))"
    return f"label_replace({summed}, {STATE_NAME})"


def over_time(expr: str, legend: str, *, exemplars: bool = True) -> Dataquery:
    """A query for a graph; with exemplars its dots link to traces."""
    return Dataquery().datasource(PROMETHEUS).expr(expr).legend_format(legend).range().exemplar(exemplars)


def at_end(expr: str, legend: str) -> Dataquery:
    """A query for one value a series, over the whole range that the dashboard shows."""
    query = Dataquery().datasource(PROMETHEUS).expr(expr).legend_format(legend).instant().ref_id("A")
    return query.format(PromQueryFormat.TIME_SERIES)


def graph(title: str, description: str, unit: str, *queries: Dataquery) -> timeseries.Panel:
    """A graph over time, half the width; its legend is a table of means and ends."""
    legend = VizLegendOptions().display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.RIGHT)
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(PROMETHEUS)
        .unit(unit)
        .min(0)
        .interval("15s")
        .fill_opacity(10)
        .legend(legend.calcs(["mean", "lastNotNull"]).show_legend(True))
        .span(12)
        .height(9)
    )
    for name, query in zip("AB", queries, strict=False):
        panel = panel.with_target(query.ref_id(name))
    return panel


def bars(panel: timeseries.Panel) -> timeseries.Panel:
    """The graph as stacked bars, for things that are counted."""
    stacked = panel.draw_style(GraphDrawStyle.BARS).stacking(StackingConfig().mode(StackingMode.NORMAL))
    return stacked.fill_opacity(80)


def number(title: str, description: str, unit: str, query: Dataquery) -> stat.Panel:
    """One figure, a quarter of the width."""
    last = ReduceDataOptions().calcs(["lastNotNull"])
    panel = stat.Panel().title(title).description(description).datasource(PROMETHEUS).unit(unit).decimals(0)
    return panel.reduce_options(last).with_target(query).no_value("0").span(6).height(4)


def dashboard(title: str, uid: str, description: str) -> Dashboard:
    """An empty dashboard with the choice of services and a link to the other ones."""
    services = (
        QueryVariable("service")
        .label("Service")
        .datasource(PROMETHEUS)
        .query(f"label_values({CALLS}, service_name)")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value(".*")
    )
    others = DashboardLink("otel-bridge").type(DashboardLinkType.DASHBOARDS).tags([TAG]).keep_time(True)
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-30m", "now")
        .refresh("10s")
        .with_variable(services)
        .link(others)
    )


def sessions() -> Dashboard:
    """How many sessions there are, how they end, and where their time goes."""
    most = (
        bargauge.Panel()
        .title("What the agent did most")
        .description("Tool calls in the range shown.")
        .datasource(PROMETHEUS)
        .orientation(VizOrientation.HORIZONTAL)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .decimals(0)
        .min(0)
        .with_target(at_end(f"sort_desc(topk(12, {count(TOOL, RANGE, 'gen_ai_tool_name')}))", "{{gen_ai_tool_name}}"))
        .span(12)
        .height(9)
    )
    shares = (
        piechart.Panel()
        .title("Time paused against running")
        .description("Where the debugged programs spent the time, by the state spans that ended in the range shown.")
        .datasource(PROMETHEUS)
        .unit("s")
        .display_labels([PieChartLabels.NAME, PieChartLabels.PERCENT])
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(at_end(state_seconds(RANGE, "increase"), "{{state}}"))
        .span(12)
        .height(9)
    )
    return (
        dashboard("Debug sessions", "otel-bridge-sessions", "What agents debug: sessions, their ends, their time.")
        .with_panel(number("Sessions begun", "Roots that came.", "none", at_end(count(ROOT, RANGE), "begun")))
        .with_panel(
            number("Sessions over", "Lifetime spans that came.", "none", at_end(count(LIFETIME, RANGE), "over"))
        )
        .with_panel(number("Tool calls", "Answered or not.", "none", at_end(count(TOOL, RANGE), "calls")))
        .with_panel(number("Failed calls", "With status ERROR.", "none", at_end(count(FAILED, RANGE), "failed")))
        .with_panel(
            bars(
                graph(
                    "Sessions begun",
                    "By language.",
                    "none",
                    over_time(count(ROOT, RATE, "debug_session_language"), "{{debug_session_language}}"),
                )
            )
        )
        .with_panel(
            bars(
                graph(
                    "How sessions ended",
                    "closed: by the client; not_closed: the server ended, or fell silent for long.",
                    "none",
                    over_time(count(LIFETIME, RATE, "debug_session_end_reason"), "{{debug_session_end_reason}}"),
                )
            )
        )
        .with_panel(
            graph(
                "How long sessions last",
                "From created to closed or over; a dot is a session.",
                "s",
                over_time(quantile(0.5, LIFETIME), "p50", exemplars=False),
                over_time(quantile(0.95, LIFETIME), "p95"),
            )
        )
        .with_panel(
            bars(
                graph(
                    "Paused and running, over time",
                    "Seconds of program time a second, counted when a state ends.",
                    "none",
                    # Exemplars are on the buckets of a histogram, its sum has none.
                    over_time(state_seconds(RATE, "rate"), "{{state}}", exemplars=False),
                )
            )
        )
        .with_panel(shares)
        .with_panel(most)
    )


def tools() -> Dashboard:
    """How fast and how well each tool answers."""
    by_tool = "gen_ai_tool_name"
    share = f"{count(FAILED, RATE, by_tool)} / {count(TOOL, RATE, by_tool)}"
    return (
        dashboard("Debug tools", "otel-bridge-tools", "How fast and how well the server's tools answer.")
        .with_panel(
            graph(
                "Latency by tool, p95",
                "A dot is a call: it opens the session.",
                "s",
                over_time(quantile(0.95, TOOL, by_tool), "{{gen_ai_tool_name}}"),
            )
        )
        .with_panel(
            graph(
                "Latency by tool, p50",
                "Half of the calls are faster.",
                "s",
                over_time(quantile(0.5, TOOL, by_tool), "{{gen_ai_tool_name}}", exemplars=False),
            )
        )
        .with_panel(
            bars(
                graph(
                    "Failures by error.type",
                    "tool_error, or the code of the JSON-RPC error. A dot is a failed call.",
                    "none",
                    over_time(count(FAILED, RATE, "error_type"), "{{error_type}}"),
                )
            )
        )
        .with_panel(
            graph(
                "Share of calls that fail, by tool",
                "Of the calls that ended.",
                "percentunit",
                over_time(share, "{{gen_ai_tool_name}}", exemplars=False),
            ).max(1)
        )
        .with_panel(
            bars(
                graph(
                    "Calls by tool",
                    "Answered or not.",
                    "none",
                    over_time(count(TOOL, RATE, by_tool), "{{gen_ai_tool_name}}"),
                )
            ).span(24)
        )
    )


def generate() -> Mapping[str, str]:
    """The dashboards: file name and text, the same text for the same program."""
    encoder = JSONEncoder(sort_keys=True, indent=2)
    made = {"sessions.json": sessions(), "tools.json": tools()}
    return {name: encoder.encode(builder.build()) + "\n" for name, builder in made.items()}


def main() -> int:
    """Writes the files; with `--check` writes none, and returns 1 when one is not as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    checking = parser.parse_args().check
    stale = {name: text for name, text in generate().items() if not _holds(HERE / name, text)}
    for name, text in stale.items():
        if checking:
            sys.stderr.write(f"dashboards/{name} is not current: run python dashboards/generate.py\n")
        else:
            (HERE / name).write_text(text)
    return 1 if checking and stale else 0


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main())
