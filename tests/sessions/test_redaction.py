"""Secrets that are known by name, shape or place, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.redaction import (
    REDACTED,
    is_sensitive_name,
    redact,
    redact_entry,
    redact_named,
    redact_text,
)

SID = "806a0589-7b86-490d-9928-679ab71012c1"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIhunter2\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.c2lnbmF0dXJl"

SENSITIVE = (
    "api_key apiKey API-KEY apikey x-api-key secret MY_SECRET clientSecret token accessToken tokens "
    "password PASSWORD userPassword credential credentials auth oauth OAuth2 Authorization session_id "
    "SESSION_ID sessionid session-id userSessionId access_key accessKey signing signing_key private_key "
    "privateKey GITHUB_PAT githubPat pat key cacheKey KEY pwd PG_PWD_1 passwd cred creds db-cred bearer "
    "jwt JWT myJwt passphrase request.password $password --token pass DB_PASS dbPass passcode Cookie set-cookie"
)
HARMLESS = (
    "sessionId debug.session.id mcp.session.id request.sessionId PATH path executablePath scriptPath "
    "compat monkey keyboard keys credits pattern level message timestamp namespace sessionName tool "
    "request response expression result variablesReference threadId breakpointId frameId file line "
    "condition logMessage stopOnEntry passed bypass compass pass_count passes"
)

TEXTS = [
    ("password='hunter2'", "password='<redacted>'"),
    ('password = "hun\\"ter2" next', 'password = "<redacted>" next'),
    ("password=hunter2, user=bob", "password=<redacted>, user=bob"),
    ("(password=hunter2)", "(password=<redacted>)"),
    ("password=hun,ter2;x user=bob", "password=<redacted> user=bob"),
    ("password != 'hunter2' and n == 3", "password != '<redacted>' and n == 3"),
    ("'eval password=' + 'hunter2'", "'eval password=<redacted>'"),
    ("password = cfg.get('pw') or 'hunter2'", "password = <redacted>"),
    ('password: str = "hunter2", n: int', "password: <redacted>, n: int"),
    ("api_key='hunter' 'hunter2'", "api_key=<redacted>"),
    ("password=b'hunter2'", "password=b'<redacted>'"),
    ("password=\"it's hunter2", "password=<redacted>"),
    ("password: don't tell", "password: <redacted> tell"),
    ("tokens = ['hunter2', 'b']; n = 1", "tokens = <redacted>; n = 1"),
    ("password = (\n 'hunter2'\n) # x", "password = <redacted> # x"),
    ("set_password('hunter2')", "set_password('<redacted>')"),
    ("os.environ.get('API_KEY', 'hunter2')", "os.environ.get('API_KEY', '<redacted>')"),
    ('token := "hunter2"', 'token := "<redacted>"'),
    ("'password' => 'hunter2'", "'password' => '<redacted>'"),
    ("<password>hunter2</password>", "<password><redacted></password>"),
    ("the password 'hunter2' was wrong", "the password '<redacted>' was wrong"),
    ("cfg['password'] = 'hunter2'", "cfg['password'] = '<redacted>'"),
    ("--token=hunter2 run", "--token=<redacted> run"),
    ("--password hunter2 run", "--password <redacted> run"),
    ("['--password', 'hunter2', 'run']", "['--password', '<redacted>', 'run']"),
    ("API_KEY: hunter2", "API_KEY: <redacted>"),
    ("API key: hunter2", "API key: <redacted>"),
    ("Bearer hunter2", "Bearer <redacted>"),
    ("Authorization: Basic aHVudGVyMg==", "Authorization: <redacted>"),
    ("Authorization: Bearer hunter2\nHost: x", "Authorization: <redacted>\nHost: x"),
    ('Authorization: Digest a="b", r="hunter2"\nHost: x', "Authorization: <redacted>\nHost: x"),
    ("{'Authorization': 'Bearer hunter2', 'x': 1}", "{'Authorization': '<redacted>', 'x': 1}"),
    ("https://x/?token=hunter2&user=bob", "https://x/?token=<redacted>&user=bob"),
    ("postgres://bob:hunter2@db/prod", "postgres://bob:<redacted>@db/prod"),
    ("redis://:hun@ter2@db:6379/0", "redis://:<redacted>@db:6379/0"),
    ("env={'A': 'hunter2'} run", "env=<redacted> run"),
    ("environ({'A': 'hunter2'})", "environ(<redacted>)"),
    ("process.env.A = 'hunter2'", "process.env.A = '<redacted>'"),
    ("os.environ['A'] = 'hunter2'", "os.environ['A'] = '<redacted>'"),
    (r"line\npassword=hunter2", r"line\npassword=<redacted>"),
    (r"line\nkey=hunter2", r"line\nkey=<redacted>"),
    ('Sending {"password":"hunter2","n":1}', 'Sending {"password":"<redacted>","n":1}'),
    (r"Sending {\"password\":\"hunter2\",\"n\":1}", r"Sending {\"password\":\"<redacted>\",\"n\":1}"),
    (
        '[{"name":"token","type":"str","value":"hunter2"},{"na',
        '[{"name":"token","type":"str","value":"<redacted>"},{"na',
    ),
    (f"key = {PEM}, n = 1", "key = <redacted>, n = 1"),
    (f"cut {PEM[:45]}", "cut <redacted>"),
    ("x ghp_hunter20123456789abcdefABCDEF0123456 y", "x <redacted> y"),
    ("gho_hunter2 ghu_hunter2 ghs_hunter2 ghr_hunter2 x", "<redacted> <redacted> <redacted> <redacted> x"),
    ("cut ghp_hun", "cut <redacted>"),
    ("cut 'ghp_hun...'", "cut '<redacted>...'"),
    (r"\nghp_hunter2 x", r"\n<redacted> x"),
    ("xghp_hunter20123456789abcdefABCDEF0123456", "x<redacted>"),
    ("x github_pat_11HUNTER2 y", "x <redacted> y"),
    ("sk-hunter20123456789abcdefABCDEF sk-proj-hunter2", "<redacted> <redacted>"),
    ("'AKIAIOSFODNN7EXAMPLE'", "'<redacted>'"),
    ("ASIAIOSFODNN7EXAMPLE", "<redacted>"),
    (f"x {JWT}, y", "x <redacted>, y"),
    ("cut eyJhbGciOi… (truncated)", "cut <redacted>… (truncated)"),
    ("DB_PASS=hunter2 --db-pass hunter3 x", "DB_PASS=<redacted> --db-pass <redacted> x"),
    ("Cookie: sid=hunter2; theme=dark\r\nHost: x", "Cookie: <redacted>\r\nHost: x"),
    ("{'Set-Cookie': 'sid=hunter2; Path=/', 'x': 1}", "{'Set-Cookie': '<redacted>', 'x': 1}"),
    ("password: |\n  hunter2\n\n  hunter3\nnext: 1", "password: <redacted>\nnext: 1"),
    ("token: >-\n  hunter2", "token: <redacted>"),
    ("\x1b[1mpassword\x1b[0m: hunter2 x", "\x1b[1mpassword\x1b[0m: <redacted> x"),
    ("\x1b[33mpwd: hunter2 x", "\x1b[33mpwd: <redacted> x"),
    ("\x1b[01;31m\x1b[Kpasswd\x1b[m\x1b[K=hunter2 x", "\x1b[01;31m\x1b[Kpasswd\x1b[m\x1b[K=<redacted> x"),
    ("\x1b[1mcookie\x1b[0m: a=hunter2; b=c\nHost: x", "\x1b[1mcookie\x1b[0m: <redacted>\nHost: x"),
    ('\x1b[34m"pwd"\x1b[0m: hunter2 x', '\x1b[34m"pwd"\x1b[0m: <redacted> x'),
    (r"\u001b[33mpwd\u001b[0m: hunter2 x", r"\u001b[33mpwd\u001b[0m: <redacted> x"),
    (r"\x1b[33mjwt=hunter2 x", r"\x1b[33mjwt=<redacted> x"),
    ("--pwd\x1b[0m hunter2 x", "--pwd\x1b[0m <redacted> x"),
    ("\x1b[36menv\x1b[0m={'A': 'hunter2'} run", "\x1b[36menv\x1b[0m=<redacted> run"),
    ("\x1b[32mghp_hunter2 \x1b[32mBearer hunter2", "\x1b[32m<redacted> \x1b[32mBearer <redacted>"),
    ("https://bob:hun/ter2@host/x", "https://bob:<redacted>@host/x"),
    ("https://hunter2@host/x", "https://<redacted>@host/x"),
    ("xoxb-1234567890-hunter2 xapp-1-hunter2hunter2", "<redacted> <redacted>"),
    ("AIzaSyA1234567890hunter2hunter2 x", "<redacted> x"),
    ("sk_live_hunter2hunter2 rk_test_hunter2hunter2", "<redacted> <redacted>"),
    ("glpat-hunter2hunter2 npm_hunter2hunter2hunter2hunter2 x", "<redacted> <redacted> x"),
    ("pypi-hunter2hunter2 x", "<redacted> x"),
    ("SG.hunter2hunter2hunter2.hunter2hunter2 ya29.hunter2hunter2hunter2", "<redacted> <redacted>"),
    ("cut glpat-hunter2...", "cut <redacted>..."),
    ("hf_hunter2hunter2hunter2abc dckr_pat_hunter2-hunter2-hunter2 x", "<redacted> <redacted> x"),
    ("dop_v1_hunter2hunter2hunter2 shpat_hunter2hunter2hunter2", "<redacted> <redacted>"),
    ("header Basic aHVudGVyOmh1bnRlcjI= x", "header Basic <redacted> x"),
    (
        "https://h/x?X-Amz-Signature=hunter2&a=1 https://h/y?sig=hunter2",
        "https://h/x?X-Amz-Signature=<redacted>&a=1 https://h/y?sig=<redacted>",
    ),
    ("SharedAccessSignature sr=x&sig=hunter2&se=1", "SharedAccessSignature sr=x&sig=<redacted>&se=1"),
    ("https://hooks.slack.com/services/T0/B0/hunter2 x", "https://hooks.slack.com/services/<redacted> x"),
    ("https://api.telegram.org/bot12:hunter2/x", "https://api.telegram.org/bot<redacted>"),
    ("curl -u admin:hunter2 http://h/", "curl -u admin:<redacted> http://h/"),
    ("curl -s --user 'admin:hunter2' http://h/", "curl -s --user 'admin:<redacted>' http://h/"),
    ("sshpass -p hunter2 ssh h; sshpass -phunter2 ssh h", "sshpass -p <redacted> ssh h; sshpass -p<redacted> ssh h"),
    ('char password[] = "hunter2";', 'char password[] = "<redacted>";'),
    ("x?a=1&password%3Dhunter2 y", "x?a=1&password%3D<redacted> y"),
    ("DBPASSWD=hunter2 x", "DBPASSWD=<redacted> x"),
]

LEFT_ALONE = [
    "",
    "Basic authentication is used, basic functionality",
    "docker run -u bob:bob x, def signature(f)",
    "curl -s http://h/ -o x",
    "the pw is swordfish",
    f"Session not found: {SID}",
    f"sessionId: {SID}, sessionId='{SID}' request.sessionId={SID}",
    "token == None",
    "password != null && x",
    "def login(password: str, n: int)",
    "sorted(x, key=lambda r: r.name)",
    "KeyError: 'name'",
    "KeyError('name')",
    "/app/auth.py:42: in login",
    "at login (/app/token.js:10:5)",
    "Unexpected token '}' in JSON",
    "Unexpected token < in JSON at position 0",
    'missing key "port"',
    "<token> <path>",
    "risk-management-in-practice sk-learn is",
    "Asia/Tokyo ASIA 2026",
    "http://localhost:4873/@scope/name",
    "env = production",
    "environment.yml: 3 packages, process.env.A: set",
    "auth::login()",
    "password='' token=\"\"",
    "password=<redacted:sensitive-name> Bearer <redacted:bearer-token>, '<redacted:github-pat>'",
    "postgres://admin:<redacted:url-basic-auth>@db/prod",
    "['--token', '<redacted:github-pat>', '--password=<redacted:connection-string-password>']",
    "{'Authorization': 'Bearer <redacted:bearer-token>', 'x': 1}",
    "env: <57 env vars redacted>",
    "if x:\n    pass\n'text'",
    "PASS: test_cart (0.1 s), 2 passed",
    "\x1b[32mPASS\x1b[0m: test_cart, \x1b[31m2 passed\x1b[0m in 3 s, \x1b[31mauth\x1b[0m.py:42: in x",
    "npm_config_prefix=/usr xoxo risk_live",
    "https://git@github.com/x ssh://bob@host mailto:a@b.c",
    "http://[::1]:4318/v1/@x http://host:80/@scope",
]


@pytest.mark.parametrize("name", SENSITIVE.split())
def test_sensitive_name(name: str) -> None:
    """Names with a pattern of the specification's list anywhere, or a word of its other list, are sensitive."""

    assert is_sensitive_name(name)
    assert redact({"a": [{name: "hunter2"}]}) == {"a": [{name: REDACTED}]}


@pytest.mark.parametrize("name", HARMLESS.split())
def test_harmless_name(name: str) -> None:
    """Names that only contain a word's letters are not sensitive, and neither is the session's id."""

    assert not is_sensitive_name(name)
    assert redact({name: "hunter2"}) == {name: "hunter2"}


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_secret_in_text(text: str, expected: str) -> None:
    """In free text a secret goes, and what stands round it stays."""

    assert redact_text(text) == expected
    assert redact({"a": [text]}) == {"a": [expected]}


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_text_without_a_secret(text: str) -> None:
    """Text that only looks like one with a secret stays as it is, and so do the markers that the server wrote."""

    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": ["a", {"b": 1}], "n": 1}, {"password": REDACTED, "n": 1}),
        ({"token": 1234}, {"token": REDACTED}),
        (
            {
                "token": None,
                "hasToken": True,
                "auth": "",
                "jwt": "<redacted:jwt>",
                "key": "Bearer <redacted:bearer-token>",
            },
            {
                "token": None,
                "hasToken": True,
                "auth": "",
                "jwt": "<redacted:jwt>",
                "key": "Bearer <redacted:bearer-token>",
            },
        ),
        ({"x ghp_hunter2": 1, "y": 2}, {"x <redacted>": 1, "y": 2}),
        ({"ghp_hunter2": 1, "ghp_hunter3": 2}, {REDACTED: 1, "<redacted> (1)": 2}),
        (["--password", "hunter2", "x"], ["--password", REDACTED, "x"]),
        (["--password", 1234, "x"], ["--password", REDACTED, "x"]),
        (["-token", "-hunter2"], ["-token", REDACTED]),
        (["--no-auth", "--verbose", "x"], ["--no-auth", "--verbose", "x"]),
        (["--password=hunter2", "-v"], ["--password=<redacted>", "-v"]),
        ([["X-Api-Key", "hunter2"], ["Host", "x"]], [["X-Api-Key", REDACTED], ["Host", "x"]]),
        (["password", "user", "host"], ["password", "user", "host"]),
        ({"\x1b[33mpwd\x1b[0m": "hunter2"}, {"\x1b[33mpwd\x1b[0m": REDACTED}),
        (["password", "=", "hunter2", "x"], ["password", "=", REDACTED, "x"]),
        (["-e", "FOO=hunter2", "BAR=1"], ["-e", "FOO=<redacted>", "BAR=1"]),
        (["docker", "run", "--env", "FOO=hunter2", "x"], ["docker", "run", "--env", "FOO=<redacted>", "x"]),
        (
            ["/usr/bin/env", "A=hunter2", "B=hunter3", "python", "C=1"],
            ["/usr/bin/env", "A=<redacted>", "B=<redacted>", "python", "C=1"],
        ),
        (["node", "-e", "x = 1"], ["node", "-e", "x = 1"]),
        ({"key": "API_KEY", "val": "hunter2"}, {"key": REDACTED, "val": REDACTED}),
        ({"name": "password", "content": "hunter2"}, {"name": "password", "content": REDACTED}),
        ({"name": "cart.py", "content": "n = 1"}, {"name": "cart.py", "content": "n = 1"}),
        (['{"password":null}', "x"], ['{"password":null}', "x"]),
        ({"name": "api_key", "value": "hunter2", "type": "str"}, {"name": "api_key", "value": REDACTED, "type": "str"}),
        ({"expression": "cfg.password[:3]", "result": "hun"}, {"expression": "cfg.password[:3]", "result": REDACTED}),
        ({"expression": "os.environ", "result": "A=hunter2"}, {"expression": "os.environ", "result": REDACTED}),
        (
            {"expression": '{"p\\u0061ssword":1}', "result": "hunter2"},
            {"expression": '{"password":"<redacted>"}', "result": REDACTED},
        ),
        ({"key": "DB_PASSWORD", "value": "hunter2"}, {"key": REDACTED, "value": REDACTED}),
        ({"name": "n", "value": "3", "result": 4}, {"name": "n", "value": "3", "result": 4}),
        ({"env": {"A": "hunter2", "N": 1, "D": {"x": 1}}}, {"env": {"A": REDACTED, "N": REDACTED, "D": REDACTED}}),
        ({"env": {"ghp_hunter2": "a", "ghp_hunter3": "b"}}, {"env": {REDACTED: REDACTED, "<redacted> (1)": REDACTED}}),
        ({"env": ["A=hunter2", "B"]}, {"env": ["A=<redacted>", REDACTED]}),
        ({"environment": [{"name": "A", "value": "hunter2"}]}, {"environment": [{"name": "A", "value": REDACTED}]}),
        ({"env": '{"A":"hunter2"}'}, {"env": '{"A":"<redacted>"}'}),
        ({"env": "A=hunter2"}, {"env": REDACTED}),
        ({"env": "<57 env vars redacted>"}, {"env": "<57 env vars redacted>"}),
        (
            {"environment": "production", "hasEnv": True, "envFile": "/x/.env"},
            {"environment": "production", "hasEnv": True, "envFile": "/x/.env"},
        ),
        ({"a": '{"b": [{"password": "hunter2"}], "n": 1}'}, {"a": '{"b":[{"password":"<redacted>"}],"n":1}'}),
        ({"a": '{"p\\u0061ssword":"hunter2"}'}, {"a": '{"password":"<redacted>"}'}),
        ({"a": '{"b":"ghp_hunter2","b":"token"}'}, {"a": '{"b":"token"}'}),
        ({"a": '"password=\'hunter2"'}, {"a": '"password=<redacted>"'}),
        (
            {"a": '{"token":1,"n":123456789012345678901234567890}'},
            {"a": '{"token":"<redacted>","n":123456789012345678901234567890}'},
        ),
    ],
)
def test_secret_in_a_structure(value: object, expected: object) -> None:
    """Names, flags, environments and neighbours tell of secrets at any depth, and in JSON inside strings."""

    assert redact(value) == expected
    assert redact({"x": [value]}) == {"x": [expected]}
    assert json.loads(redact_text(json.dumps({"token": 1, "x": value}))) == {"token": REDACTED, "x": expected}


def test_named_value() -> None:
    """A value that stands alone is redacted by the name that it is known to have."""

    assert redact_named("api_key", {"a": 1}) == REDACTED
    assert redact_named("env", {"A": "hunter2"}) == {"A": REDACTED}
    assert redact_named("file", "password=hunter2") == "password=<redacted>"
    assert redact_named("sessionId", SID) == SID


def test_entry() -> None:
    """An entry is redacted in its fields and in the text glued behind its kind; its kind and its time are kept."""
    entry = Entry("tool:error", "password=hunter2", 5, {"sessionId": SID, "error": "bad --token hunter2"})

    assert redact_entry(entry) == Entry(
        "tool:error", "password=<redacted>", 5, {"sessionId": SID, "error": "bad --token <redacted>"}
    )


def test_nothing_to_hide_is_not_copied() -> None:
    """What holds no secret comes back as the same object, so that it costs nothing."""
    entry = Entry("tool:call", "", 5, {"sessionId": SID, "request": {"args": ["-v", 1, None], "env": {}}})

    assert redact_entry(entry) is entry


def test_a_value_that_was_clean_beside_a_harmless_name_is_hidden_beside_a_telling_one() -> None:
    """What is remembered of a value does not outweigh what stands beside it."""
    for _ in range(2):
        assert redact({"name": "colour", "value": "blue"}) == {"name": "colour", "value": "blue"}
        assert redact({"name": "db_password", "value": "blue"}) == {"name": "db_password", "value": REDACTED}
        assert redact([{"expression": "token", "result": "blue", "name": "colour"}]) == [
            {"expression": "token", "result": REDACTED, "name": "colour"}
        ]


def test_other_types() -> None:
    """What is no JSON value becomes its text, redacted."""

    assert redact({"a": ValueError("password=hunter2"), "b": ("--token", "x"), 3: b"x"}) == {
        "a": "password=<redacted>",
        "b": ["--token", REDACTED],
        "3": "b'x'",
    }


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: [{"a": inner}]])
def test_too_deep(wrap: Callable[[object], object]) -> None:
    """A value nested beyond all reason is hidden from some depth on, and nothing fails."""
    value: object = "hunter2"
    for _ in range(450):
        value = wrap(value)
    text = str(redact(value))

    assert REDACTED in text
    assert "hunter2" not in text
