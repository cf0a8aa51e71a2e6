"""The dashboards in the project are what their program makes, and what was asked of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.stack.compose import PROJECT

FOLDER = PROJECT / "dashboards"


def dashboards() -> list[dict[str, Any]]:
    """All dashboards."""
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]


def test_dashboards_are_current() -> None:
    """The program that makes them would write the files that are there."""
    done = subprocess.run([sys.executable, FOLDER / "generate.py", "--check"], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_changed_dashboard_is_not_current(tmp_path: Path) -> None:
    """The check names a file that is not as the program would write it, and the program mends it."""
    program = tmp_path / "generate.py"
    program.write_text((FOLDER / "generate.py").read_text())
    for path in FOLDER.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "tools.json").write_text("{}\n")

    checked = subprocess.run([sys.executable, program, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert "tools.json is not current" in checked.stderr
    assert (tmp_path / "tools.json").read_text() == "{}\n"

    subprocess.run([sys.executable, program], check=True)
    assert (tmp_path / "tools.json").read_text() == (FOLDER / "tools.json").read_text()


def test_dashboards_show_what_was_asked() -> None:
    """There are panels for sessions, latency, failures, time paused against running, and what the agent did most."""
    titles = {panel["title"] for dashboard in dashboards() for panel in dashboard["panels"]}

    assert titles >= {
        *("Sessions begun", "How sessions ended", "How long sessions last", "Time paused against running"),
        *("What the agent did most", "Latency by tool, p50", "Latency by tool, p95", "Failures by error.type"),
    }


def test_panels_use_the_provisioned_data_source() -> None:
    """Every query goes to a data source that is provisioned."""
    provisioned = yaml.safe_load(
        (PROJECT / "deploy" / "grafana" / "provisioning" / "datasources" / "otel-bridge.yaml").read_text()
    )
    uids = {source["uid"] for source in provisioned["datasources"]}
    queries = [query for dashboard in dashboards() for panel in dashboard["panels"] for query in panel["targets"]]

    assert {query["datasource"]["uid"] for query in queries} <= uids


def test_every_dashboard_has_panels_that_link_to_traces() -> None:
    """Each dashboard has queries with exemplars, and no two dashboards have one id."""
    for dashboard in dashboards():
        assert any(query.get("exemplar") for panel in dashboard["panels"] for query in panel["targets"])
    assert len({dashboard["uid"] for dashboard in dashboards()}) == len(dashboards())
