"""Asking a real Prometheus, as Grafana asks it."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from typing import Any

RANGE_S = 300
STEP_S = 5
VARIABLES = {"$service": ".*", "$__rate_interval": "1m", "$__range": f"{RANGE_S}s"}
"""What Grafana puts in the place of its variables, for a dashboard that shows the last five minutes."""

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Prometheus:
    """The HTTP API of a Prometheus."""

    def __init__(self, url: str) -> None:
        self._url = url

    def instant(self, expr: str) -> list[tuple[dict[str, str], float]]:
        """The series of an expression now: labels and value."""
        found = self._get("query", query=_filled(expr))["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def over_time(self, expr: str) -> list[tuple[dict[str, str], list[float]]]:
        """The series of an expression over the range: labels and values."""
        found = self._get("query_range", query=_filled(expr), step=str(STEP_S), **_range())["result"]
        return [(series["metric"], [float(value) for _, value in series["values"]]) for series in found]

    def exemplars(self, expr: str) -> list[dict[str, str]]:
        """The labels of the exemplars of an expression's metrics over the range."""
        found = self._get("query_exemplars", query=_filled(expr), **_range())
        return [dict(exemplar["labels"]) for series in found for exemplar in series["exemplars"]]

    def _get(self, what: str, **parameters: str) -> Any:
        with _direct.open(f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}", timeout=10) as reply:
            return json.load(reply)["data"]


def _range() -> dict[str, str]:
    now = time.time()
    return {"start": f"{now - RANGE_S:.3f}", "end": f"{now:.3f}"}


def _filled(expr: str) -> str:
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    return expr
