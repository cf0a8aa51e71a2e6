"""An agent that is instrumented with OpenTelemetry, as the MCP client is by itself: `instrumented.py CMD...`.

It debugs a little and prints its own spans as JSON: name, trace and span id, and the attributes.
"""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


async def debug(command: list[str]) -> None:
    """Makes a session, asks for the sessions, closes it."""
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        with trace.get_tracer("agent").start_as_current_span("an agent's thought"):
            given = {"language": "python", "name": "instrumented", "executablePath": sys.executable}
            created = await session.call_tool("create_debug_session", given)
            session_id = json.loads(created.content[0].text)["sessionId"]  # type: ignore[union-attr]
            await session.call_tool("list_debug_sessions", {})
            await session.call_tool("close_debug_session", {"sessionId": session_id})


def main() -> None:
    """Prints the spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    asyncio.run(debug(sys.argv[1:]))
    spans = [
        {
            "name": span.name,
            "trace_id": f"{span.context.trace_id:032x}",
            "span_id": f"{span.context.span_id:016x}",
            "attributes": dict(span.attributes or {}),
        }
        for span in exporter.get_finished_spans()
    ]
    print(json.dumps(spans))  # noqa: T201


if __name__ == "__main__":
    main()
