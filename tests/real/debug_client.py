"""The real server, driven over stdio by the real MCP client, with debugpy and a real program."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

import mcp_types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.calls import Call, Outcome
from tests.real.parts import part
from tests.real.program import end_marked, marked
from tests.waiting import wait_until

FACT = Path(__file__).parent / "programs" / "fact.py"
"""A program to debug; `FACT_LOOP` and `FACT_RETURN` are lines of it that are fit for a breakpoint."""
FACT_LOOP = 14
FACT_RETURN = 8


class DebugClient:
    """One server process and its client, as a context manager; calls block, or run on with `start`.

    `calls` is the client's own record, in the order of sending. Without `log_file` the server logs where it does by
    default, `default_log_folder`: it then runs from a copy of its package in `folder`. `folder` also gets its stderr.
    `wrapped` may put another program before the server's command; `pid` is then that program's. `last` is called when
    the connection is closed, before what is left of the processes is killed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        log_file: Path | None,
        log_level: str = "info",
        env: Mapping[str, str] | None = None,
        wrapped: Callable[[list[str]], list[str]] = lambda command: command,
        last: Callable[[], object] = lambda: None,
    ) -> None:
        self.folder = folder
        self.log_file = log_file
        self.calls: list[Call] = []
        self.pid = 0
        self.default_log_folder = folder / "node_modules" / "@debugmcp" / "logs"
        self._cli, self._log_level, self._wrapped = part("server"), log_level, wrapped
        self._last = last
        # Whatever the server starts inherits this, and is found by it at the end.
        self._env = {**(env or {}), **marked(folder)}
        self._open = ExitStack()
        self._portal: BlockingPortal
        self._session: ClientSession

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opening:
            # A killed server leaves its adapters and programs, in process groups of their own.
            opening.callback(end_marked, self.folder)
            opening.callback(self._last)
            self._portal = opening.enter_context(start_blocking_portal())
            self._session = opening.enter_context(self._portal.wrap_async_context_manager(self._connected()))
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, tool: str, /, **arguments: object) -> Call:
        """Calls a tool and waits for its end. Never raises for what the server answers: see the record's outcome."""
        return self.send(tool, arguments).result()

    def start(self, tool: str, /, **arguments: object) -> Future[Call]:
        """Calls a tool without waiting; the future gives the record."""
        return self.send(tool, arguments)

    def gather(self, calls: Iterable[tuple[str, Mapping[str, object]]]) -> list[Call]:
        """Calls all of them at once, (tool, arguments) each, and waits for them all."""
        started = [self.send(tool, arguments) for tool, arguments in calls]
        return [future.result() for future in started]

    def send(self, tool: str, arguments: Mapping[str, object], *, give_up_after_s: float | None = None) -> Future[Call]:
        """Calls a tool without waiting; the client cancels the call after `give_up_after_s` seconds, if given."""
        seq = len(self.calls)
        record = Call(seq, tool, arguments.get("sessionId"), arguments, _now_ms(), None, Outcome.NO_RESPONSE)
        self.calls.append(record)
        return self._portal.start_task_soon(self._call, record, give_up_after_s)

    def create_session(self, name: str, **arguments: object) -> str:
        """Makes a Python session that runs under this interpreter, which has debugpy; returns its id."""
        given = {"language": "python", "name": name, "executablePath": sys.executable, **arguments}
        return str(self.send("create_debug_session", given).result()["sessionId"])

    def wait_paused(self, session_id: str) -> Call:
        """Asks for the stack until the program stands; returns the call that saw it. All asking is in the record."""

        def asked() -> Call | None:
            stack = self.call("get_stack_trace", sessionId=session_id)
            return stack if stack.success else None

        return wait_until(asked, f"session {session_id} is paused")

    def run_to_breakpoint(self, name: str, program: Path = FACT, line: int = FACT_LOOP) -> str:
        """Makes a session, sets a breakpoint, starts the program and waits until it stands there; returns the id."""
        session_id = self.create_session(name)
        self.call("set_breakpoint", sessionId=session_id, file=str(program), line=line)
        self.call(
            "start_debugging",
            sessionId=session_id,
            scriptPath=str(program),
            dapLaunchArgs={"stopOnEntry": False},
        )
        self.wait_paused(session_id)
        return session_id

    def kill(self) -> None:
        """SIGKILL to the server alone; its adapters live on until `close`. Returns when it is gone."""
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal that ends the server; returns when it is gone."""
        os.kill(self.pid, number)
        wait_until(lambda: not self.alive, f"the server ends after {number.name}")

    @property
    def alive(self) -> bool:
        """Whether the server's process is there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def close(self) -> None:
        """Closes the server's stdin, calls in flight or not, and returns when it is gone with all that it started."""
        self._open.close()

    async def _call(self, record: Call, give_up_after_s: float | None) -> Call:
        sent = replace(record, start_ms=_now_ms())
        ended = self.calls[sent.seq] = sent
        try:
            result = await self._session.call_tool(
                sent.tool, dict(sent.arguments), read_timeout_seconds=give_up_after_s
            )
        except MCPError as error:
            ended = _failed(sent, error)
        else:
            text = "".join(part.text for part in result.content if isinstance(part, mcp_types.TextContent))
            ended = _answered(sent, text)
        self.calls[sent.seq] = ended
        return ended

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ClientSession]:
        pid_file = self.folder / "server.pid"
        # The client does not tell the pid of what it starts; `exec` keeps the one that the shell wrote down.
        server = StdioServerParameters(
            command="sh",
            args=["-c", 'echo $$ > "$0" && exec "$@"', str(pid_file), *self._wrapped(["node", *self._command()])],
            env=self._env,
            cwd=self.folder,
        )
        with (self.folder / "server.stderr").open("w") as errors:
            async with stdio_client(server, errors) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                self.pid = int(pid_file.read_text())
                yield session

    def _command(self) -> list[str]:
        words = ["stdio", "--log-level", self._log_level]
        if self.log_file is not None:
            return [str(self._cli), *words, "--log-file", str(self.log_file)]
        package = self._cli.parent.parent
        copy = self.default_log_folder.parent / package.name
        if not copy.exists():
            shutil.copytree(package, copy, copy_function=_link)
        return [str(copy / self._cli.relative_to(package)), *words]


def _answered(sent: Call, payload: str) -> Call:
    answered = replace(sent, end_ms=_now_ms(), outcome=Outcome.RESULT, payload=payload)
    success = answered.fields.get("success")
    created = answered.fields.get("sessionId") if sent.tool == "create_debug_session" else None
    return replace(answered, success=success if isinstance(success, bool) else None, created_session_id=created)


def _failed(sent: Call, error: MCPError) -> Call:
    if error.code == mcp_types.CONNECTION_CLOSED:
        return sent
    if error.code == mcp_types.REQUEST_TIMEOUT:
        return replace(sent, outcome=Outcome.CLIENT_TIMEOUT)
    return replace(sent, end_ms=_now_ms(), outcome=Outcome.RPC_ERROR, error=error.message)


def _link(source: str, target: str) -> object:
    try:
        os.link(source, target)
    except OSError:
        return shutil.copy2(source, target)
    return target


def _now_ms() -> float:
    return time.time_ns() / 1e6
