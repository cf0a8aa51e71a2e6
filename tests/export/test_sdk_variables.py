from __future__ import annotations

import os
import subprocess
import sys

import pytest

from otel_bridge.export.sdk_variables import unusable, unusable_put_aside


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, ()),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "12"}, ()),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": ""}, ()),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "garbage"}, ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",)),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "-1"}, ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",)),
        ({"OTEL_PYTHON_CONTEXT": "contextvars_context"}, ()),
        ({"OTEL_PYTHON_CONTEXT": "garbage"}, ("OTEL_PYTHON_CONTEXT",)),
        ({"OTEL_PYTHON_METER_PROVIDER": "garbage"}, ("OTEL_PYTHON_METER_PROVIDER",)),
    ],
)
def test_unusable(environ: dict[str, str], expected: tuple[str, ...]) -> None:
    """A count that is none, and a name of nothing that is installed; what can be used is left alone."""
    assert unusable(environ) == expected


def test_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables are back afterwards, also after an error: a server that is started later gets them."""
    monkeypatch.setenv("OTEL_PYTHON_CONTEXT", "garbage")

    def fail() -> None:
        with unusable_put_aside():
            raise RuntimeError(os.environ.get("OTEL_PYTHON_CONTEXT"))

    with pytest.raises(RuntimeError, match="None"):
        fail()
    assert os.environ["OTEL_PYTHON_CONTEXT"] == "garbage"


OTHERS = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_TRACES_SAMPLER",
    "OTEL_PYTHON_TRACER_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
    "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS",
    "OTEL_METRICS_EXEMPLAR_FILTER",
)


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "garbage"},
        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "-1"},
        {"OTEL_PYTHON_CONTEXT": "garbage"},
        {"OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": "true", "OTEL_PYTHON_METER_PROVIDER": "garbage"},
        dict.fromkeys(OTHERS, "garbage"),
    ],
    ids=lambda environ: next(iter(environ)),
)
def test_they_are_nothing_to_the_transport(environ: dict[str, str]) -> None:
    """A variable that only the SDK's own spans or metrics would obey ends no export and says nothing."""
    code = (
        "from otel_bridge.settings import resolve_export_settings\n"
        "from otel_bridge.export.transport import open_transport\n"
        "print(open_transport(resolve_export_settings({}, endpoint='http://127.0.0.1:1')).send(b''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environ}
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "connection refused" in done.stdout
