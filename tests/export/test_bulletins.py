from __future__ import annotations

from otel_bridge.export.bulletins import Bulletin, BulletinKind, Bulletins
from otel_bridge.export.retry import RetryPolicy


def bulletins() -> Bulletins:
    return Bulletins("http://backend/v1/traces", RetryPolicy(warn_after_s=30.0, warn_every_s=60.0))


def texts(some: list[Bulletin]) -> list[str]:
    return [one.text for one in some]


def test_an_outage() -> None:
    """An outage is said after 30 s, then once a minute with its length and the lag, and its end once."""
    board = bulletins()
    said: list[tuple[float, str]] = []
    for now_s in range(1000, 1200):
        board.fail("connection refused", float(now_s), needs_action=False)
        said += [(now_s - 1000.0, one.text) for one in board.take(float(now_s), 1024, now_s - 995.0)]
    board.succeed()
    said += [(200.0, one.text) for one in board.take(1200.0, 0, 0.0)]
    board.succeed()
    said += [(201.0, one.text) for one in board.take(1300.0, 0, 0.0)]

    start = "delivery to http://backend/v1/traces waits"
    end = "; nothing is lost, still trying"
    assert said == [
        (30.0, f"{start}, for 30 s now: connection refused; 1,024 spans in the air, the oldest for 35 s{end}"),
        (90.0, f"{start}, for 90 s now: connection refused; 1,024 spans in the air, the oldest for 95 s{end}"),
        (150.0, f"{start}, for 2 min now: connection refused; 1,024 spans in the air, the oldest for 3 min{end}"),
        (200.0, "http://backend/v1/traces takes spans again, after 3 min"),
    ]


def test_a_moment_is_not_worth_a_word() -> None:
    """Trouble that is over before 30 s have passed is never said, nor is its end."""
    board = bulletins()
    for now_s in (0.0, 10.0, 20.0):
        board.fail("busy", now_s, needs_action=False)
    board.succeed()
    board.fail("busy", 40.0, needs_action=False)

    assert board.take(40.0, 1, 0.0) == []
    assert board.next_s() == 70.0


def test_what_needs_action_is_said_at_once() -> None:
    """A wrong address is said at the first reply, then once a minute; also when it follows another trouble."""
    board = bulletins()
    board.fail("connection refused", 0.0, needs_action=False)
    board.fail("HTTP 404", 5.0, needs_action=True)

    assert texts(board.take(5.0, 1, 0.0)) == [
        "delivery to http://backend/v1/traces waits, for 5 s now: HTTP 404; 1 span in the air; "
        "nothing is lost, still trying"
    ]
    board.fail("HTTP 404", 6.0, needs_action=True)
    assert board.take(6.0, 1, 0.0) == []
    assert board.next_s() == 65.0


def test_due_without_news() -> None:
    """The minute is told to whoever waits, so that a long wait is no silence."""
    board = bulletins()
    board.fail("HTTP 429", 0.0, needs_action=False)

    assert board.next_s() == 30.0
    assert [one.kind for one in board.take(30.0, 1, 0.0)] == [BulletinKind.TROUBLE]
    assert board.next_s() == 90.0


def test_late() -> None:
    """Beyond an hour the line says what some stores do with late spans."""
    board = bulletins()
    board.fail("down", 0.0, needs_action=False)

    (bulletin,) = board.take(9000.0, 5, 9000.0)
    assert "for 2.5 h now" in bulletin.text
    assert bulletin.text.endswith("; some stores drop spans that come more than an hour late")
    assert bulletin.spans == 5


def test_refusals() -> None:
    """The first refusal is said at once, the next ones together a minute later, the last at the end."""
    board = bulletins()
    board.refuse(1, "HTTP 400: bad; kept")
    first = board.take(0.0, 0, 0.0)
    for now_s in range(1, 60):
        board.refuse(2, "HTTP 400: worse; kept")
        assert board.take(float(now_s), 0, 0.0) == []
    second = board.take(60.0, 0, 0.0)
    board.refuse(3, "HTTP 400: last; kept")
    assert board.take(61.0, 0, 0.0) == []
    last = board.take(62.0, 0, 0.0, is_last=True)

    name = "http://backend/v1/traces refused"
    assert [first, second, last] == [
        [Bulletin(BulletinKind.REFUSED, f"{name} 1 span: HTTP 400: bad; kept", 1)],
        [Bulletin(BulletinKind.REFUSED, f"{name} 118 spans: HTTP 400: worse; kept", 118)],
        [Bulletin(BulletinKind.REFUSED, f"{name} 3 spans: HTTP 400: last; kept", 3)],
    ]


def test_warnings() -> None:
    """What a backend says beside taking the spans is said, with how often it did."""
    board = bulletins()
    board.warn("use v2")
    first = board.take(0.0, 0, 0.0)
    board.warn("use v2")
    board.warn("use v3")

    assert texts(first) == ["http://backend/v1/traces took the spans but says: use v2"]
    assert texts(board.take(60.0, 0, 0.0)) == ["http://backend/v1/traces took the spans but says (2 times): use v3"]
