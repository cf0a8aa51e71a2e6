"""The wrapper around an MCP server (`otel-bridge run`): bytes pass through, copies of the frames become spans.

    client ══▶ pump ══▶ server          the pump (pump.py) is the process that the client started; nothing but bytes
           ◀══      ◀══                 passes through its interpreter
               │ records (records.py): copies of frames, over a bounded queue (feed.py)
               ▼
             worker ──▶ backend         the worker (worker.py) has an interpreter of its own: mapping and export

Where the server is mcp-debugger, the worker follows its log as well (run_tail.py); what a run that was killed did not
deliver, the next one does (pickup.py). Importing this package imports nothing.
"""
