"""The client's own record of a tool call: what traces are held against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a call ended for the client; the values are those of the recordings."""

    RESULT = "result"
    """A tool result came, which may say that the tool failed: see `Call.success`."""
    RPC_ERROR = "rpc_error"
    """A JSON-RPC error came."""
    CLIENT_TIMEOUT = "client_timeout"
    """The client gave the call up and cancelled it."""
    NO_RESPONSE = "no_response"
    """Nothing came: the server was gone."""


@dataclass(frozen=True, slots=True)
class Call:
    """One `tools/call` as its client saw it; times are Unix milliseconds of the client's clock.

    `session_id` is what the client sent, whatever its type; `created_session_id` the session that the call made.
    `success` is the payload's own word, None where it has none. `payload` is the result's text, which recordings may
    hold cut. `error` is the message of a JSON-RPC error.
    """

    seq: int
    tool: str
    session_id: object
    arguments: Mapping[str, object]
    start_ms: float
    end_ms: float | None
    outcome: Outcome
    success: bool | None = None
    created_session_id: str | None = None
    payload: str = ""
    error: str = ""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The payload decoded; empty where it is no JSON object or was cut."""
        try:
            decoded = json.loads(self.payload)
        except ValueError:
            return {}
        return decoded if isinstance(decoded, dict) else {}

    def __getitem__(self, name: str) -> Any:
        """A field of the payload; KeyError names the call and what it answered instead."""
        if name not in self.fields:
            raise KeyError(f"{self.tool} answered no {name!r}: {self.payload or self.error or self.outcome}")
        return self.fields[name]
