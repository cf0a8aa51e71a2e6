"""The documentation says what the code does: its commands run, its blocks parse, its tables are whole."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from otel_bridge.cli.main import COMMANDS, cli
from otel_bridge.sessions.attributes import MappingOptions
from otel_bridge.sessions.capture import Capture
from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.testing import Receiver
from tests.recordings import Recording, recordings
from tests.sessions.reading import items_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language in all pages."""
    fence = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [block for page in PAGES for block in fence.findall(page.read_text(encoding="utf-8"))]


def shell_commands() -> list[list[str]]:
    """The words of each `otel-bridge` command in the shell blocks."""
    lines = [line.strip() for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("otel-bridge ")]


def configured_commands() -> list[list[str]]:
    """The command lines of the MCP clients' configurations."""
    servers = [server for block in blocks("json") for server in json.loads(block)["mcpServers"].values()]
    return [[server["command"], *server["args"]] for server in servers]


@pytest.mark.parametrize("words", shell_commands(), ids=" ".join)
def test_every_command_in_the_pages_is_one(words: list[str]) -> None:
    """Its options are known and its arguments are accepted; nothing is run."""
    command = cli.get_command(cli.make_context("otel-bridge", [], resilient_parsing=True), words[1])
    assert command is not None

    with command.make_context(words[1], words[2:]) as context:
        assert context.params


@pytest.mark.parametrize("words", configured_commands(), ids=" ".join)
def test_an_mcp_clients_configuration_starts_the_wrapper(words: list[str]) -> None:
    """`uvx otel-bridge` is this package; what follows `--` is the server's own command."""
    assert words[:4] == ["uvx", "otel-bridge", "run", "--"]
    assert "@debugmcp/mcp-debugger" in words


@pytest.mark.parametrize("words", [words for words in shell_commands() if words[1] in ("replay", "show")], ids=" ".join)
def test_the_commands_on_finished_logs_work_as_shown(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the recorded log under the name that the page gives it, and a backend where there is one by default."""
    (tmp_path / "server.log").write_bytes(Recording("happy").log)
    monkeypatch.chdir(tmp_path)
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        result = CliRunner().invoke(cli, words[1:])

    assert result.exit_code == 0, result.output
    assert "806a05897b86490d9928679ab71012c1" in result.output


def test_the_python_of_the_readme_runs() -> None:
    """In an interpreter of its own, with no backend there."""
    for block in blocks("python"):
        ended = subprocess.run(
            [sys.executable, "-c", block], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
        )
        assert ended.returncode == 0, ended.stderr


def test_the_demo_draws_what_the_readme_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of the picture is a row of the demo, at the width that a pipe gets."""
    monkeypatch.delenv("COLUMNS", raising=False)
    (picture,) = [block for block in blocks("text") if block.startswith("cart total")]
    drawn = {line.rstrip() for line in CliRunner().invoke(cli, ["demo"]).output.splitlines()}

    assert [line for line in picture.splitlines() if line.rstrip() not in drawn] == []


def test_the_page_of_the_command_line_is_current() -> None:
    """It is written from the commands' own help."""
    ended = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=ROOT, check=False)
    assert ended.returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    """Its first lines say what it does, then how it is used."""
    result = CliRunner().invoke(cli, [name, "--help"])

    assert result.exit_code == 0
    assert f"otel-bridge {name}" in result.output.partition("Example")[2]


def test_every_attribute_is_in_its_page() -> None:
    """All that the recorded logs give, and all that the code can."""
    page = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", (ROOT / "docs" / "attributes.md").read_text(encoding="utf-8")))
    given: set[str] = set()
    for recording in recordings():
        mapping = LogMapping(MappingOptions(capture=Capture.FULL))
        for span in mapping.take(items_of(recording.log)) + mapping.end(1 << 42):
            given |= span.attributes.keys()
            given |= {name for event in span.events for name in event.attributes}

    assert given - page == set()


def test_links_between_the_pages_lead_somewhere() -> None:
    """Each relative link names a file."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
