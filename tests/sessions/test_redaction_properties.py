"""What redaction keeps to whatever it is given."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_bridge.sessions import redaction, redaction_memory
from otel_bridge.sessions.redaction import redact, redact_text
from tests.sessions.test_redaction import SENSITIVE

WORDS = (
    r"""password token key KEY= sessionId env environ[ process.env.A api_key --token --password - = == != := """
    r"""=> : :: , ; . ( ) [ ] { } < > </ & | + or if None null 'x' "y" ' " ` \ \" \n ghp_ ghp_hunter2 """
    r"""github_pat_ sk- sk-hunter20 AKIA AKIAIOSFODNN7 eyJ eyJhbGciOiJI.e.s -----END :// ://u:p@h @ Bearer """
    r"""Basic Authorization Digest <redacted> <redacted:jwt> hunter2 auth.py 42 KeyError é … ... a """
)
words = st.sampled_from([*WORDS.split(), " ", "  ", "\n", "\t", "-----BEGIN ", '{"a":', "\ud800"])
phrases = st.lists(words, max_size=12).map("".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | phrases,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            phrases | st.sampled_from(["name", "value", "expression", "result", "env"]), inner, max_size=4
        )
        | inner.map(lambda value: json.dumps(value))
    ),
    max_leaves=10,
)


@given(json_values)
def test_twice_is_once(value: object) -> None:
    """What was redacted is redacted: an entry that passes twice has the same ids as one that passed once."""
    once = redact(value)

    assert redact(once) == once


@given(phrases)
@example("--bearer ==!=authorization: token=\\n ")
@example("://auth.py:1,;@[None-")
def test_text_twice_is_once(text: str) -> None:
    """Redacted text stays as it is."""
    once = redact_text(text)

    assert redact_text(once) == once


@given(json_values)
def test_json_stays_json(value: object) -> None:
    """Text that is JSON is JSON of the same kind after its secrets are gone."""
    text = json.dumps(value, ensure_ascii=False)
    left: Any = json.loads(redact_text(text))

    assert [type(left), len(left) if isinstance(left, list | dict) else 0] == [
        type(value),
        len(value) if isinstance(value, list | dict) else 0,
    ]


def is_spared(text: str) -> bool:
    """Whether the quick search finds nothing in a text, so that no rule is asked."""
    return redaction._TELLING.search(text.lower()) is None


spared_texts = st.recursive(
    st.lists(words.filter(is_spared), max_size=12).map("".join).filter(is_spared),
    lambda inner: st.lists(inner, max_size=3).map(json.dumps).filter(is_spared),
)


@given(spared_texts)
@example("a=b -e A=hunter2")
def test_quick_test_lets_nothing_pass(text: str) -> None:
    """The search that spares most texts the rules finds something in every text that a rule would change."""
    assert meaning(redaction._redact_telling(text, 0)) == meaning(text)


@given(json_values)
def test_what_was_seen_before_changes_nothing(value: object) -> None:
    """A value is redacted alike whatever came before it, and by whatever names."""
    names = {"a": value, "name": "x", "value": value, "env": value}
    seen = redact(names)
    again = redact(names)
    redaction_memory.clean_texts.forget()
    redaction_memory.clean_names.forget()
    redaction_memory.clean_beside_harmless.forget()
    redaction_memory.harmless_namings.forget()

    assert redact(names) == again == seen


def meaning(value: object) -> object:
    """A value with JSON inside strings decoded, for where the rules are asked at all it is written anew."""
    match value:
        case str():
            text = re.sub("[\ud800-\udfff]", "�", value)
            if not text.lstrip().startswith(("{", "[", '"')):
                return text
            try:
                return "json", meaning(json.loads(text))
            except ValueError:
                return text
        case list():
            return [meaning(item) for item in value]
        case dict():
            return [(meaning(name), meaning(item)) for name, item in value.items()]
    return value


secrets = st.text("abcdefghijkmnopqrstuvwxyzABCDEFGHIJ0123456789", min_size=6, max_size=20).map("hunter2{}".format)


@given(
    secrets,
    st.sampled_from(SENSITIVE.split()),
    st.sampled_from(["{}={}", "{}: {}", "{} = '{}'", '"{}": "{}"', "{}='{}", 'x {}="{}" y']),
)
def test_secret_after_any_sensitive_name(secret: str, name: str, phrase: str) -> None:
    """Whatever the sensitive name, the secret after it is gone."""

    assert secret not in redact_text(phrase.format(name, secret))


HOSTILE = [
    "a",
    "token ",
    "token='",
    "token='a' ",
    "token=a&",
    "password=\\",
    "(token",
    '\\"',
    "sk-a",
    "eyJa.",
    "://a:",
    "-----BEGIN ",
    "environ[",
    "Authorization: ",
    '"a",',
    '{"a":',
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", HOSTILE)
def test_no_pattern_runs_away(piece: str) -> None:
    """A megabyte of the worst text takes seconds, where a pattern that reads it again and again would take hours."""
    half = piece * ((1 << 19) // len(piece))

    assert isinstance(redact_text(f"{half}\npassword=({half}"), str)
