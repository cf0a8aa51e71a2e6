"""Result entries: which tool an entry is the result of, and what in it names the call that it belongs to.

The log has no request ids. What it has are the entries that a tool writes just before its response; the expression, the
file and line, or the scope in them name the call (recorded logs: plain order pairs 8 of 361 calls wrongly).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.ids import canonical_json
from otel_bridge.values import value

Fields = Mapping[str, object]
ANY: Final = "*"
"""The key of calls that differ in nothing their results would show."""


@value(frozen=True, slots=True)
class Result:
    """What a result entry says: of which tool, of which call, whether the tool's answer is next, whether it failed."""

    tool: str
    key: str
    final: bool
    failed: bool
    error: object | None = None


def call_key(tool: str, request: object) -> str | None:
    """What the results of this call will be recognised by; None when the call can't get as far as a result."""
    asked = request if isinstance(request, (dict, Mapping)) else {}
    making = _KEY_OF_CALL.get(tool)
    return making(asked) if making else ANY


def leaves_evidence(tool: str) -> bool:
    """Whether a call of this tool that got past its validation writes a result entry."""
    return tool in _KEY_OF_CALL


def result_of(entry: Entry) -> Result | None:
    """The entry as a result, or None when it is none.

    `debug:evaluate` comes before the `tool:evaluate_expression` of the same call, so it is not the final one.
    """
    fields = entry.fields
    if entry.kind == "debug:evaluate":
        return Result(EVALUATE, _expression(fields) or ANY, False, fields.get("event") == "error", fields.get("error"))
    if entry.kind == "debug:variables":
        return Result("get_variables", _hashed(fields.get("variablesReference")), True, False)
    if entry.kind == "debug:source_context":
        return Result("get_source_context", _place(fields) or ANY, True, False)
    if not entry.kind.startswith("tool:") or entry.kind in ("tool:call", "tool:response", "tool:error"):
        return None
    tool, _, suffix = entry.kind.removeprefix("tool:").partition(":")
    said = fields.get("response")
    response: Fields = said if isinstance(said, (dict, Mapping)) else {}
    failed = suffix == "error" or fields.get("success") is False or response.get("success") is False
    error = fields.get("error", response.get("error"))
    if tool == EVALUATE:
        return Result(tool, _expression(fields) or ANY, True, failed, error)
    if tool == "set_breakpoint":
        asked = {"file": response.get("file"), "line": response.get("requestedLine", response.get("line"))}
        return Result(tool, _place(asked) or ANY, True, failed, error)
    return Result(tool, ANY, True, failed, error)


EVALUATE: Final = "evaluate_expression"


_COMPARED_UNITS: Final = 60
"""The server cuts expressions in its result entries at 100 UTF-16 units, through a surrogate pair if need be."""


def _expression(fields: Fields) -> str | None:
    expression = fields.get("expression")
    if not isinstance(expression, str):
        return None
    return _begins(expression[:_COMPARED_UNITS])


@lru_cache(maxsize=1024)
def _begins(beginning: str) -> str:
    if not beginning.isascii():
        units = beginning.encode("utf-16-le", "surrogatepass")[: 2 * _COMPARED_UNITS]
        beginning = units.decode("utf-16-le", "ignore")
    return _hashed(beginning)


def _scope(fields: Fields) -> str | None:
    return _hashed(fields["scope"]) if "scope" in fields else None


def _place(fields: Fields) -> str | None:
    file = fields.get("file")
    if not isinstance(file, str):
        return None
    line = fields.get("line")
    if type(line) is int and len(file) <= _LONGEST_PATH:
        return _line_of(file, line)
    return _hashed([_base(file), line])


_LONGEST_PATH: Final = 512


@lru_cache(maxsize=1024)
def _line_of(file: str, line: int) -> str:
    return _hashed([_base(file), line])


def _base(file: str) -> str:
    """The name without its folders: the server resolves the path it was given, so only that is sure to be the same."""
    return PureWindowsPath(file).name if "\\" in file else PurePosixPath(file).name


def _hashed(value: object) -> str:
    return blake2b(canonical_json(value), digest_size=8).hexdigest()


_KEY_OF_CALL: Final[Mapping[str, Callable[[Fields], str | None]]] = {
    EVALUATE: _expression,
    "get_variables": _scope,
    "get_source_context": _place,
    "set_breakpoint": lambda request: _place(request) or (ANY if "function" in request else None),
    "get_local_variables": lambda request: ANY,
}
