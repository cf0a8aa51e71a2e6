"""`otel-bridge completion`: scripts that shells can run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import NEUTRAL, run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_asks_the_command_for_completions(shell: str) -> None:
    """Each shell's script is printed, and calls `otel-bridge` itself for what fits."""
    ran = run("completion", shell)

    assert (ran.status, ran.err) == (0, "")
    assert f"_OTEL_BRIDGE_COMPLETE={shell}_complete" in ran.out


def test_bash_completes_a_command() -> None:
    """With the script sourced, bash makes `resend` of `res`."""
    bash = shutil.which("bash")
    assert bash, "this test needs bash"
    script = (
        "source <(otel-bridge completion bash)\n"
        "COMP_WORDS=(otel-bridge res) COMP_CWORD=1\n"
        "_otel_bridge_completion otel-bridge\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{Path(sys.executable).parent}:{NEUTRAL['PATH']}"
    done = subprocess.run(
        [bash, "-c", script], capture_output=True, text=True, env={**NEUTRAL, "PATH": path}, check=True
    )

    assert done.stdout == "resend\n"


def test_unknown_shell_is_a_usage_error_that_names_the_known_ones() -> None:
    """Exit status 2, and the three shells."""
    ran = run("completion", "tcsh")

    assert ran.status == 2
    assert all(shell in ran.err for shell in ("bash", "zsh", "fish"))


def test_help_says_how_to_install_it() -> None:
    """The examples can be pasted, one a shell."""
    out = run("completion", "--help").out

    assert "source <(otel-bridge completion bash)" in out
    assert "source <(otel-bridge completion zsh)" in out
    assert "~/.config/fish/completions/otel-bridge.fish" in out
