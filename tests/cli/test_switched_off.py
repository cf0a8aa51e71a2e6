"""The commands that export, where the environment switches the export off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run
from tests.recordings import Recording


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")], ids=["disabled", "none"]
)
@pytest.mark.parametrize(("command", "status"), [("replay", 2), ("tail", 2), ("resend", 2), ("doctor", 1)])
def test_it_is_said_with_what_to_do(tmp_path: Path, command: str, status: int, variable: str, value: str) -> None:
    """Nothing is read then, so that nothing counts as delivered."""
    log = tmp_path / "server.log"
    log.write_bytes(Recording("happy").log)
    state = tmp_path / "state"
    environ = {variable: value, "OTEL_BRIDGE_STATE_DIR": str(state)}

    ran = run(command, *([log] if command != "resend" else []), environ=environ)

    assert ran.status == status
    assert f"{variable}={value}: nothing is exported" in ran.out + ran.err
    assert "unset the variable" in ran.out + ran.err
    assert not state.exists()


def test_a_flag_that_chooses_is_stronger_than_the_variable_that_does(tmp_path: Path) -> None:
    """Argument before environment, as everywhere."""
    log = tmp_path / "server.log"
    log.write_bytes(Recording("happy").log)

    ran = run("replay", "--exporter", "console", log, environ={"OTEL_TRACES_EXPORTER": "none"})

    assert ran.status == 0
    assert '"name":"debug_session lifetime"' in ran.out
