"""The recording with invented secrets in every place that a client can put one."""

from __future__ import annotations

import orjson
import pytest

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.redaction import redact, redact_entry
from tests.recordings import RECORDINGS, Recording, recording
from tests.sessions.reading import items_of

PLANTED = {
    "ghp_NAME0123456789abcdefABCDEF0123456789": "the session's name",
    "cond-hunter2": "a breakpoint's condition, compared with a password",
    "log-hunter2": "a logpoint's message",
    "ghp_ARGS0123456789abcdefABCDEF0123456789ab": "a program argument, after --token",
    "args-hunter2": "a program argument, --password=…",
    "launchenv-secret-5555": "an environment variable of the launch",
    "ghp_LAUNCHENV0123456789abcdefABCDEF0123": "an environment variable of the launch",
    "adapterenv-secret-6666": "an environment variable of the adapter",
    "dap-launch-hunter2": "a launch argument",
    "attach-hunter2": "an attach argument",
    "attach-bearer-1212": "a header among the attach arguments",
    "eval-hunter2": "an expression, and the SyntaxError about it",
    "concat-hunter2": "an expression, joined to the text before it",
    "kwarg-secret-4444": "an expression's keyword argument, and its result",
    "sk-evalLITERAL0123456789abcdefABCDEF01": "an expression that is a token",
    "ghp_EVALLIT0123456789abcdefABCDEF0123456789": "an expression that is a token",
    "srv-my-secret-8888": "a variable called env_secret, and its evaluation",
    "stdout-hunter2": "a source line",
    "ghp_STDOUT0123456789abcdefABCDEF012345678": "a source line",
    "stdoutkey-9999": "a source line",
    "bearer-HEADER-abc123": "a source line",
    "swordfish-plain": "a variable called innocent, and its evaluation",
}
"""Every secret that stands in a structured entry of the log, and where."""

NOT_TO_BE_KNOWN = {"swordfish-plain"}
"""`innocent = 'the pw is swordfish-plain'`: no telling name before it, no shape of its own, no place that tells."""

ENTRIES = [item for item in items_of(recording("secrets").log) if isinstance(item, Entry)]


def shown(entry: Entry) -> str:
    """All that an entry says, as text."""
    return f"{entry.kind} {entry.text} {orjson.dumps(dict(entry.fields)).decode()}"


@pytest.mark.parametrize("secret", PLANTED, ids=lambda secret: str(secret)[:14])
def test_planted_secret(secret: str) -> None:
    """A planted secret is in the log, and in no redacted entry, but for the one that nothing tells of."""
    before = [entry for entry in ENTRIES if secret in shown(entry)]
    after = [entry for entry in ENTRIES if secret in shown(redact_entry(entry))]

    assert before
    assert bool(after) == (secret in NOT_TO_BE_KNOWN)


def test_what_the_server_hid_is_still_told() -> None:
    """The server's own markers, which say what it hid, stay."""
    after = "".join(shown(redact_entry(entry)) for entry in ENTRIES)

    for marker in ("sensitive-name", "github-pat", "url-basic-auth", "jwt", "aws-access-key-id", "bearer-token"):
        assert f"<redacted:{marker}>" in after


def test_what_the_mapping_needs_is_kept() -> None:
    """Session ids, tools, places and times of the entries survive, and so does all of what they are matched by."""
    for entry in ENTRIES:
        after = redact_entry(entry)
        for name in ("sessionId", "tool", "file", "line", "event", "success", "breakpointId", "threadId", "timestamp"):
            assert after.fields.get(name) == entry.fields.get(name)


@pytest.mark.parametrize(
    "recorded", [one for one in RECORDINGS if one.name != "secrets"], ids=lambda recorded: str(recorded.name)
)
def test_logs_without_secrets_stay_as_they_are(recorded: Recording) -> None:
    """Nothing is taken from the other recordings, whose clients told no secrets."""
    entries = [item for item in items_of(recorded.log) if isinstance(item, Entry)]

    assert [redact_entry(entry) for entry in entries] == entries


def test_protocol_traces() -> None:
    """In the traces of the debug adapter protocol nothing planted is left but what stands apart from its name.

    A response there does not repeat the expression that it answers: whoever pairs them redacts them together.
    """
    messages = [orjson.loads(line) for trace in recording("secrets").dap_traces for line in trace.data.splitlines()]
    after = orjson.dumps([redact(message) for message in messages]).decode()

    assert {secret for secret in PLANTED if secret in after} == {"swordfish-plain", "srv-my-secret-8888"}
    assert redact({"expression": "env_secret", "result": "'srv-my-secret-8888'"}) == {
        "expression": "env_secret",
        "result": "<redacted>",
    }
