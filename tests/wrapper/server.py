"""A small MCP server for tests: does what the arguments of a call ask for. Run as a script; needs Python only."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

NAMES = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """What is sent back for a request; None for a notification, or for a call that is never answered."""
    if "id" not in message:
        return None
    params = message.get("params", {})
    if message["method"] == "initialize":
        info = {"name": "tiny", "version": "1.2"}
        return {"result": {"protocolVersion": "2025-06-18", "serverInfo": info, "capabilities": {"tools": {}}}}
    arguments = params.get("arguments") or {}
    match params.get("name"):
        case "echo":
            return {"result": {"content": [{"type": "text", "text": str(arguments.get("text"))}]}}
        case "fail":
            return {"result": {"content": [{"type": "text", "text": "it broke"}], "isError": True}}
        case "refuse":
            return {"error": {"code": -32602, "message": "no such argument"}}
        case "large":
            return {"result": {"content": [{"type": "text", "text": "x" * int(arguments["bytes"])}]}}
        case "garbage":
            sys.stdout.write("this is no JSON\n{half a \x00 line}\n\n")
            return {"result": {"content": []}}
        case "exit":
            sys.stdout.flush()
            os._exit(int(arguments["code"]))
        case "kill":
            os.kill(os.getpid(), int(arguments["number"]))
        case "slow":
            time.sleep(float(arguments["seconds"]))
            return {"result": {"content": []}}
        case "never":
            return None
        case "close_output":
            os.close(1)
    return {"error": {"code": -32601, "message": "unknown"}}


def main() -> None:
    """Serves until its input ends."""

    heard = [signal.Signals[name] for name in NAMES if signal.getsignal(signal.Signals[name]) is not signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)

    def tell_signals() -> None:
        while True:
            line = json.dumps({"method": "signal", "params": {"name": signal.Signals(signal.sigwait(heard)).name}})
            os.write(1, line.encode() + b"\n")

    # A handler would not run if its signal came right before the next line is waited for.
    threading.Thread(target=tell_signals, daemon=True).start()
    for line in sys.stdin:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        messages = told if isinstance(told, list) else [told]
        answers = [{"jsonrpc": "2.0", "id": one["id"], **found} for one in messages if (found := answer(one))]
        if answers:
            sys.stdout.write(json.dumps(answers if isinstance(told, list) else answers[0]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
