"""Takes secrets out of what the log says, before it is queued, hashed, written or shown.

A secret is known by its name (the specification's two lists of sensitive key names), by its shape (tokens of known
services, PEM blocks) or by its place (a program's environment, the password of a URL). See docs/trace-shape.md, "What
leaves the machine". Redacting twice is the same as redacting once: an entry may pass here in its host's process and
again in the mapping, and gets its ids from the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson

from otel_bridge.entries.decoding import decode_json
from otel_bridge.entries.entry import Entry
from otel_bridge.entries.flaw import Flaw
from otel_bridge.sessions.clip import sendable_text
from otel_bridge.sessions.redaction_memory import (
    LONGEST_CHARS,
    clean_names,
    clean_texts,
    harmless_namings,
    is_known,
    remember_name,
)
from otel_bridge.sessions.redaction_names import (
    MARKER,
    NAMED,
    NAMING,
    REDACTED,
    is_environment_name,
    is_sensitive_name,
    names_a_secret,
)
from otel_bridge.sessions.redaction_phrases import redact_phrases
from otel_bridge.sessions.redaction_shapes import redact_credentials, redact_keys, redact_tokens

__all__ = ["REDACTED", "is_sensitive_name", "redact", "redact_entry", "redact_named", "redact_text"]

MAX_DEPTH: Final = 160
"""Nesting, through JSON inside strings too, below which a container is hidden as a whole: entries have at most 128."""

_TELLING: Final = re.compile(
    r"secret|token|pa(?:ss|t)|c(?:red|ookie)|auth|key|sig(?:ning|=|nature=)|pwd|b(?:earer|asic)|jwt"
    r"|session[_\-. ]?id|env|gh[pousr]_|sk-|akia|asia|eyj|-----begin|://[^\s@]{0,300}@|\\u00"
    r"|slack\.com/s|telegram\.org|p_v1_|curl|hf_"
    r"|xox|app-|pypi-|aiza|k_(?:live|test)_|pm_|sg\.|a29\."
)
"""What a text has in lower case if any rule could find something in it. For most texts this search is all the cost,
which grows with the letters that an alternative can begin with: so `pm_` stands for `npm_`, `p_v1_` for `dop_v1_`, and
`a29` for `ya29`."""

_HIDDEN_ALREADY: Final = re.compile(rf"""(["']?)(?:(?:basic|bearer|token)\s+)?(?:{MARKER})\1""", re.IGNORECASE)
_NAME: Final = re.compile(r"[\w$.\-]+")
_FLAG: Final = re.compile(r"--?[A-Za-z][\w.\-]*")
_NEXT_FLAG: Final = re.compile(r"--[A-Za-z].*|-[A-Za-z]", re.DOTALL)
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*=")
_SIGNS: Final = frozenset(("=", ":", "=>"))


class _Follows(Enum):
    """How many variables of an environment can follow an argument."""

    NOTHING = 0
    ONE = 1
    ANY = 2


class _Role(Enum):
    """What a name can say of its value; most say nothing."""

    SENSITIVE = 1
    ENVIRONMENT = 2
    NAMED = 3


def redact_entry(entry: Entry) -> Entry:
    """The entry without its secrets; the same object if there is none."""
    fields = _redact_object(entry.fields, 0)
    text = redact_text(entry.text) if entry.text else ""
    if fields is entry.fields and text == entry.text:
        return entry
    return replace(entry, fields=fields, text=text)


def redact(value: object) -> object:
    """A JSON value without its secrets, at every depth; the same object if there is none.

    A mapping becomes a dict and a tuple a list where something in them changed. A value of a type that JSON does not
    know becomes its redacted text.
    """
    return _redact(value, 0)


def redact_named(name: str, value: object) -> object:
    """A value without its secrets, knowing its name; what stands under a sensitive name is hidden as a whole."""
    return _redact_under(_role(name), value, 0)


def redact_text(text: str) -> str:
    """A text without its secrets; text that is JSON stays JSON (written anew, without white space)."""
    return _redact_string(text, 0)


def _redact(value: object, depth: int) -> object:
    if isinstance(value, str):
        return _redact_string(value, depth)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (dict, Mapping)):  # dict first: asking an abstract class is slow
        return _redact_object(value, depth + 1) if depth < MAX_DEPTH else REDACTED
    if isinstance(value, (list, tuple)):
        return _redact_list(value, depth + 1) if depth < MAX_DEPTH else REDACTED
    return _redact_string(str(value), depth)


# objects and lists


def _field(name: str) -> tuple[_Role | None, str]:
    """What a name says of its value, and the name without secrets of its own."""
    return _remembered_field(name) if len(name) <= LONGEST_CHARS else (_role(name), redact_text(name))


@lru_cache(maxsize=4096)
def _remembered_field(name: str) -> tuple[_Role | None, str]:
    return _role(name), redact_text(name)


def _role(name: str) -> _Role | None:
    if is_sensitive_name(name):
        return _Role.SENSITIVE
    if is_environment_name(name):
        return _Role.ENVIRONMENT
    return _Role.NAMED if name in NAMED else None


def _redact_under(role: _Role | None, value: object, depth: int) -> object:
    match role:
        case _Role.SENSITIVE:
            return _hide(value)
        case _Role.ENVIRONMENT:
            return _redact_environment(value, depth)
    return _redact(value, depth)


def _redact_object(fields: Mapping[Any, object], depth: int) -> Mapping[str, object]:
    if is_known(fields):
        return fields
    redacted: dict[str, object] | None = None
    for number, (key, value) in enumerate(fields.items()):
        if key in clean_names.texts:
            safe_name, safe = key, _redact(value, depth)
        else:
            safe_name, safe = _redact_field(key, value, fields, depth)
        if redacted is None:
            if safe is value and safe_name == key:
                continue
            redacted = dict(islice(fields.items(), number))
        if safe_name in redacted:
            safe_name = _unused(safe_name, redacted)
        redacted[safe_name] = safe
    return fields if redacted is None else redacted


def _redact_field(key: object, value: object, fields: Mapping[Any, object], depth: int) -> tuple[str, object]:
    """The name and the value without secrets; `fields` is what they stand in."""
    role, safe_name = _field(str(key))  # of an object from a program, not from JSON, it can be anything
    if role is None:
        if safe_name == key:
            remember_name(safe_name)
        return safe_name, _redact(value, depth)
    if role is _Role.NAMED and _names_a_secret(fields):
        return safe_name, _hide(value)
    return safe_name, _redact_under(role, value, depth)


def _unused(name: str, taken: Mapping[str, object]) -> str:
    """Another key instead of one that is taken: two keys that were secrets must not become one."""
    number = len(taken)
    while (free := f"{name} ({number})") in taken:
        number += 1
    return free


def _names_a_secret(fields: Mapping[Any, object]) -> bool:
    """Whether a `value` or `result` stands beside a name or expression that speaks of a secret."""
    for key in NAMING:
        naming = fields.get(key)
        if isinstance(naming, str) and naming not in harmless_namings.texts:
            # Asked again of what is left: JSON that was written anew has none of the escapes that could hide a name.
            if names_a_secret(naming) or names_a_secret(redact_text(naming)):
                return True
            harmless_namings.remember(naming)
    return False


def _redact_list(items: Sequence[object], depth: int) -> object:
    """A list; what follows a sensitive flag is hidden, and the second half of a pair like a header's."""
    redacted: list[object] = []
    changed = False
    hidden_next = False
    before: object = None
    environment: _Follows = _Follows.NOTHING
    for item in items:
        if environment is not _Follows.NOTHING and isinstance(item, str) and _VARIABLE.match(item):
            changed = True
            redacted.append(_redact_variable(item, depth))
            if environment is _Follows.ONE:
                environment = _Follows.NOTHING
            continue
        environment = _environment_after(item)
        if isinstance(item, str) and item in _SIGNS:  # ["password", "=", "…"]
            redacted.append(item)
            hidden_next = isinstance(before, str) and is_sensitive_name(before)
            continue
        next_flag = isinstance(item, str) and _NEXT_FLAG.fullmatch(item) is not None
        safe = _hide(item) if hidden_next and not next_flag else _redact(item, depth)
        hidden_next = isinstance(item, str) and _tells_of_the_next(item, len(items))
        before = item
        changed = changed or safe is not item
        redacted.append(safe)
    return redacted if changed else items


def _environment_after(item: object) -> _Follows:
    """What of a program's environment comes after an argument: `-e NAME=value`, `env NAME=value NAME=value program`."""
    if not isinstance(item, str):
        return _Follows.NOTHING
    if item == "env" or item.endswith("/env"):
        return _Follows.ANY
    return _Follows.ONE if item == "-e" or (item.startswith("--") and is_environment_name(item)) else _Follows.NOTHING


def _tells_of_the_next(item: str, length: int) -> bool:
    shape = _NAME if length == 2 else _FLAG
    return shape.fullmatch(item) is not None and is_sensitive_name(item)


def _redact_environment(value: object, depth: int) -> object:
    """An environment, every value hidden: an object, a list of `NAME=value`, or one of `{"name": …, "value": …}`."""
    match value:
        case str():
            if isinstance(decoded := _json_container(value), (dict, list)):
                return _json_text(_redact_environment(decoded, depth + 1))
            return _hide(value) if "=" in value else _redact_string(value, depth)
        case Mapping():
            return _hide_values(value)
        case list() | tuple():
            return [_redact_variable(item, depth) for item in value]
    return _redact(value, depth)


def _hide_values(environment: Mapping[Any, object]) -> Mapping[str, object]:
    hidden: dict[str, object] = {}
    for name, value in environment.items():
        _, safe_name = _field(str(name))
        hidden[_unused(safe_name, hidden) if safe_name in hidden else safe_name] = _hide(value)
    return environment if hidden == environment else hidden


def _redact_variable(variable: object, depth: int) -> object:
    match variable:
        case str():
            name, equals, _ = variable.partition("=")
            return f"{_redact_string(name, depth)}={REDACTED}" if equals else _hide(variable)
        case Mapping():
            return {str(key): _redact(item, depth) if key in NAMING else _hide(item) for key, item in variable.items()}
    return _hide(variable)


def _hide(value: object) -> object:
    """What stands for a secret; nothing, yes and no, and what is hidden already stay."""
    if value is None or isinstance(value, bool) or value == "":
        return value
    if isinstance(value, str) and _HIDDEN_ALREADY.fullmatch(value):
        return value
    return REDACTED


# text


_MOST_PASSES: Final = 6


def _redact_string(text: str, depth: int) -> str:
    if text in clean_texts.texts:
        return text
    if _TELLING.search(text.lower()) is not None:
        safe = _redact_telling(text, depth)
        if safe != text:
            return safe
    clean_texts.remember(text)
    return text


def _redact_telling(text: str, depth: int) -> str:
    """Applies the rules until they find nothing new: what one of them leaves can be the name that another knows."""
    for _ in range(_MOST_PASSES):
        decoded = _json_container(text)
        if decoded is not None:
            # Always written anew: of two equal names in one object the text may show what the decoded value does not.
            return _json_text(_redact(decoded, depth + 1))
        safe = redact_credentials(redact_tokens(redact_phrases(redact_keys(text))))
        if safe == text:
            break
        text = safe
    return text


def _json_container(text: str) -> object:
    """The value of a text that is a JSON object, array or string; None if it is anything else."""
    if not text.lstrip(" \t\r\n").startswith(("{", "[", '"')):
        return None
    decoded = decode_json(sendable_text(text).encode())
    return None if isinstance(decoded, Flaw) else decoded


def _json_text(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
