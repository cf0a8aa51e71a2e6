"""What a command says about the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_bridge.wrapper.command import is_debugger, log_file_of, with_log_file


@pytest.mark.parametrize(
    "command",
    [
        "npx -y @debugmcp/mcp-debugger stdio",
        "npx -y @debugmcp/mcp-debugger@0.24.2 stdio",
        "npx @debugmcp/mcp-debugger@latest",
        "node /opt/x/node_modules/@debugmcp/mcp-debugger/dist/cli.mjs stdio",
        "node ./mcp-debugger/dist/index.js",
        "mcp-debugger stdio",
        "/usr/local/bin/mcp-debugger stdio",
    ],
)
def test_the_debugger_is_known(command: str) -> None:
    """By its package, with any version, or by a part of a path."""
    assert is_debugger(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "npx -y @modelcontextprotocol/server-everything",
        "npx @other/mcp-debugger-tools",
        "node /home/me/my-mcp-debugger/cli.mjs",
        "docker run --rm -i debugmcp/mcp-debugger:latest stdio",
        "uvx mcp-server-git --repository /src/mcp-debugger.git",
    ],
)
def test_another_server_is_not_taken_for_it(command: str) -> None:
    """A server that does not know the option would not start with it; in a container the path would mean nothing."""
    assert not is_debugger(command.split())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mcp-debugger stdio", None),
        ("mcp-debugger stdio --log-file", None),
        ("mcp-debugger stdio --log-file=", None),
        ("mcp-debugger stdio --log-file /var/log/a.log --log-level debug", "/var/log/a.log"),
        ("mcp-debugger stdio --log-file=/var/log/a.log", "/var/log/a.log"),
        ("mcp-debugger --log-file /a --log-file /b", "/b"),
    ],
)
def test_the_log_file_that_is_named_already(command: str, expected: str | None) -> None:
    """As the server reads it: either form, and of several the last."""
    assert (Path(expected) if expected else None) == log_file_of(command.split())


def test_a_relative_log_file_lies_where_the_server_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The server's folder is ours."""
    monkeypatch.chdir(tmp_path)

    assert tmp_path / "logs/a.log" == log_file_of(["mcp-debugger", "--log-file", "logs/a.log"])


def test_a_log_file_is_put_behind_the_command() -> None:
    """Whatever starts the server passes it on."""
    assert with_log_file(["npx", "@debugmcp/mcp-debugger", "stdio"], Path("/r/s.log")) == [
        "npx",
        "@debugmcp/mcp-debugger",
        "stdio",
        "--log-file",
        "/r/s.log",
    ]
