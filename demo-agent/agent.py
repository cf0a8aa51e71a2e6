"""An agent without a model: it debugs small buggy programs over and over through a real MCP client.

It does what a coding agent does, so that there is something to look at: sets breakpoints, runs, looks round, steps,
evaluates, makes mistakes, closes. Each call is a line of JSON on standard output, the client's own record.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client

ALIVE = Path(tempfile.gettempdir()) / "agent-alive"
"""Touched after each call; `--check` looks at its age."""
DEAD_AFTER_S = 60.0
START_DEADLINE_S = 30.0
KEPT_SESSIONS = 50


class Debugger:
    """One debug session, as a context manager: made at the start, closed at the end."""

    def __init__(self, client: ClientSession, name: str, think_s: float) -> None:
        self._client, self._name, self._think_s = client, name, think_s
        self._session_id = ""

    async def __aenter__(self) -> Self:
        made = await self._call("create_debug_session", {"language": "python", "name": self._name})
        self._session_id = made["sessionId"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.call("close_debug_session")

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Calls a tool on this session, after the time that an agent would think; returns the payload."""
        await asyncio.sleep(random.uniform(0.2, 1.8) * self._think_s)
        return await self._call(tool, {"sessionId": self._session_id, **arguments})

    async def start(self, program: str) -> None:
        """Starts a program, and waits until it stands at a breakpoint."""
        await self.call("start_debugging", scriptPath=program, dapLaunchArgs={"stopOnEntry": False})
        await self.paused()

    async def paused(self) -> dict[str, Any]:
        """Asks for the stack until the program stands; returns it. TimeoutError if it does not in time."""
        async with asyncio.timeout(START_DEADLINE_S):
            while not (stack := await self.call("get_stack_trace")).get("success"):
                pass
        return stack

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        start_ms = time.time() * 1000
        payload = await self._payload(tool, arguments)
        end_ms = time.time() * 1000
        record = {
            "tool": tool,
            "sessionId": arguments.get("sessionId") or payload.get("sessionId"),
            "start_ms": start_ms,
            "end_ms": end_ms,
            "success": payload.get("success") is not False,
        }
        print(json.dumps(record), flush=True)
        ALIVE.touch()
        return payload

    async def _payload(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the tool answered; its errors look like answers that failed, whichever way they came."""
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            return {"success": False, "error": str(error)}
        text = getattr(result.content[0], "text", "") if result.content else ""
        try:
            return dict(json.loads(text))
        except ValueError:
            return {"success": False, "error": text}


async def find_empty_class(debugger: Debugger) -> None:
    """Stops where the division fails, and tries it in place: the evaluation fails as the program would."""
    await debugger.call("set_breakpoint", file="average.py", line=6, condition="not grades")
    await debugger.start("average.py")
    await debugger.call("get_local_variables")
    await debugger.call("evaluate_expression", expression="len(grades)")
    await debugger.call("evaluate_expression", expression="total / len(grades)")
    await debugger.call("evaluate_expression", expression="total / max(len(grades), 1)")
    await debugger.call("get_source_context", file="average.py", line=6)


async def step_into_the_loop(debugger: Debugger) -> None:
    """Stands in the loop and steps, with a look at the variables each time."""
    await debugger.call("set_breakpoint", file="stock.py", line=10)
    await debugger.start("stock.py")
    for _ in range(2):
        stack = await debugger.paused()
        scopes = await debugger.call("get_scopes", frameId=stack["stackFrames"][0]["id"])
        await debugger.call("get_variables", scope=scopes["scopes"][0]["variablesReference"])
        await debugger.call("step_over")
        await debugger.call("step_over")
        await debugger.call("evaluate_expression", expression="(position, total)")
    await debugger.call("clear_breakpoints")
    await debugger.call("step_out")


async def wait_for_primes(debugger: Debugger) -> None:
    """Lets a slow program run to its last line."""
    await debugger.call("set_breakpoint", file="primes.py", line=10)
    await debugger.start("primes.py")
    await debugger.call("evaluate_expression", expression="found[-3:]")
    await debugger.call("continue_execution")
    await debugger.call("get_output")


async def make_mistakes(debugger: Debugger) -> None:
    """Does what goes wrong: a program that is not there, a stack before there is one, a session closed twice."""
    await debugger.call("start_debugging", scriptPath="averages.py")
    await debugger.call("get_stack_trace")
    await debugger.call("evaluate_expression", expression="grades")
    await debugger.call("set_breakpoint", file="stock.py", line=17)
    await debugger.start("stock.py")
    await debugger.call("close_debug_session")


Plan = Callable[[Debugger], Awaitable[None]]
PLANS: dict[str, Plan] = {
    "average of an empty class": find_empty_class,
    "stock: where does it come from": step_into_the_loop,
    "primes are slow": wait_for_primes,
    "mistakes": make_mistakes,
}


def tidy(folder: Path) -> None:
    """Removes what the server keeps of old sessions, a folder each and for ever: this demo may run for days."""
    by_age = sorted(folder.iterdir(), key=lambda kept: kept.stat().st_mtime) if folder.exists() else []
    for kept in by_age[:-KEPT_SESSIONS]:
        shutil.rmtree(kept)


async def debug(url: str, sessions: int, think_s: float, server_sessions: Path | None) -> None:
    """Follows the plans in turn, `sessions` of them or without end (0), each with a client of its own.

    `server_sessions` is the folder where the server keeps a folder for each session; old ones are removed.

    Raises whatever cuts the connection: compose starts the agent again.
    """
    numbers = itertools.count(1) if sessions == 0 else range(1, sessions + 1)
    for number, (name, plan) in zip(numbers, itertools.cycle(PLANS.items()), strict=False):
        async with streamable_http_client(url) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            async with Debugger(client, f"{name} #{number}", think_s) as debugger:
                await plan(debugger)
        if server_sessions is not None:
            tidy(server_sessions)
        await asyncio.sleep(think_s)


def alive() -> bool:
    """Whether a call was made lately."""
    return ALIVE.exists() and time.time() - ALIVE.stat().st_mtime < DEAD_AFTER_S


def main() -> None:
    """Reads the command line and debugs; with `--check` says by the exit code whether another one is alive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:3001/mcp", help="the server's MCP endpoint")
    parser.add_argument("--sessions", type=int, default=0, help="how many to debug; 0, the default, for ever")
    parser.add_argument("--think-s", type=float, default=1.0, help="seconds to think before a call, about")
    parser.add_argument("--tidy", type=Path, metavar="DIR", help="where the server keeps sessions; removes old ones")
    parser.add_argument("--check", action="store_true", help="exit 0 if an agent on this machine is alive, else 1")
    options = parser.parse_args()
    if options.check:
        sys.exit(0 if alive() else 1)
    # What the server still says while the client closes is of no use to it, and no error.
    logging.getLogger("mcp.client.streamable_http").setLevel(logging.CRITICAL)
    asyncio.run(debug(options.url, options.sessions, options.think_s, options.tidy))


if __name__ == "__main__":
    main()
