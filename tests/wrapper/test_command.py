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
        "/opt/mcp-debugger/start",
        "node_modules/.bin/mcp-debugger stdio",
        "npx -p @debugmcp/mcp-debugger -- mcp-debugger stdio",
        "npx --registry https://npm.example.com @debugmcp/mcp-debugger stdio",
        "npm exec -y -- @debugmcp/mcp-debugger stdio",
        "pnpm dlx @debugmcp/mcp-debugger",
        "bun run /opt/mcp-debugger/cli.ts",
        "env DEBUG=1 -u HOME timeout -s INT 60 node --import ./hook.mjs /opt/mcp-debugger/cli.mjs stdio",
        "sh /opt/mcp-debugger/start.sh",
    ],
)
def test_the_debugger_is_known(command: str) -> None:
    """By its package, with any version, or by a part of the path of the program that is run."""
    assert is_debugger(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "npx -y @modelcontextprotocol/server-everything",
        "npx @other/mcp-debugger-tools",
        "node /home/me/my-mcp-debugger/cli.mjs",
        "docker run --rm -i debugmcp/mcp-debugger:latest stdio",
        "docker run --rm -i -v /home/me/mcp-debugger:/src debugmcp/mcp-debugger stdio",
        "uvx mcp-server-git --repository /src/mcp-debugger.git",
        "uvx mcp-server-git --repository /home/me/mcp-debugger",
        "npx -y @modelcontextprotocol/server-filesystem /home/me/mcp-debugger",
        "npx --prefix /home/me/mcp-debugger @modelcontextprotocol/server-everything",
        "node --import /home/me/mcp-debugger/hook.mjs server.mjs",
        "node /home/me/mcp-debugger/node_modules/@modelcontextprotocol/server-everything/dist/index.js",
        "/home/me/mcp-debugger/.venv/bin/python -m other_server",
        "/home/me/mcp-debugger/.venv/bin/mcp-server-git",
        "uv --directory /home/me/mcp-debugger run server.py",
        "python3.11 server.py /home/me/mcp-debugger",
        "bash -c /opt/mcp-debugger/start",
        "npm run start --prefix /home/me/mcp-debugger",
        "npx",
    ],
)
def test_another_server_is_not_taken_for_it(command: str) -> None:
    """Nor one that is given such a path, or lies below it: it would not start with an option that it does not know.

    In a container the log's path would mean nothing.
    """
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
