"""A recorded debugging session, for the `demo` command: what the log of a real server looks like, small enough to ship.

`session.log` was written by mcp-debugger 0.24.2 while a client looked for a bug in a small Python program: a breakpoint
in a file that does not exist, breakpoints that are hit, steps, evaluations of which one fails, an uncaught TypeError.
Paths are neutral and most unstructured lines are left out; no structured line is.
"""

from __future__ import annotations

from importlib import resources

__all__ = ["demo_log"]


def demo_log() -> bytes:
    """The recorded log, as the server wrote it: UTF-8 lines that end in a newline."""
    return resources.files(__name__).joinpath("session.log").read_bytes()
