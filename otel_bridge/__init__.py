"""Turns mcp-debugger's structured log into OpenTelemetry traces: a trace a debug session, a span a tool call."""

__version__ = "0.1.0"
