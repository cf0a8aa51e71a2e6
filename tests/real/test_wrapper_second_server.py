"""A real MCP server that is no debugger behind `otel-bridge run`: the reference server that has everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import mcp_types
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from otel_bridge.sessions.span import StatusCode
from otel_bridge.testing import Receiver, Request
from tests.real.parts import part
from tests.real.test_wrapper import wrapped

pytestmark = pytest.mark.real("everything")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A backend."""
    with Receiver() as backend:
        yield backend


async def use(command: list[str]) -> list[str]:
    """Calls tools, three of them at once; returns the texts of their results."""
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        results = [await session.call_tool("echo", {"message": "hello"})]
        results += await asyncio.gather(*(session.call_tool("get-sum", {"a": n, "b": 1}) for n in range(3)))
        results.append(await session.call_tool("get-sum", {"a": "no number"}))
    return [part.text for one in results for part in one.content if isinstance(part, mcp_types.TextContent)]


def service_names(requests: list[Request]) -> set[bytes]:
    """The names of services in what arrived, as bytes of the requests."""
    return {name for name in (b"mcp-debugger", b"mcp-servers/everything") for one in requests if name in one.body}


def test_every_call_is_a_trace_of_one_span(receiver: Receiver, tmp_path: Path) -> None:
    """By the server's own name, with its failure, and nothing of the debugger's."""
    command = wrapped(receiver.endpoint, tmp_path / "state")(["node", str(part("everything")), "stdio"])

    texts = asyncio.run(use(command))

    assert "Echo: hello" in texts[0]
    spans = sorted(receiver.spans, key=lambda span: span.start_ns)
    names = ["tools/call echo", *["tools/call get-sum"] * 4]
    assert [span.name for span in spans] == names
    assert {span.parent_id for span in spans} == {0}
    assert len({span.trace_id for span in spans}) == 5
    assert [span.status for span in spans] == [StatusCode.UNSET] * 4 + [StatusCode.ERROR]
    assert spans[-1].attributes["error.type"] in ("tool_error", "-32602")
    assert spans[0].attributes["gen_ai.tool.call.arguments"] == '{"message":"hello"}'
    assert service_names(receiver.requests) == {b"mcp-servers/everything"}
    assert not (tmp_path / "state").exists()
