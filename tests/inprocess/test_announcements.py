"""What the bridge says in its host."""

from __future__ import annotations

import pytest

from otel_bridge.inprocess.announcements import Announcements


def test_a_thing_that_repeats_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """At once, then with the total of a minute, then at the end; never twice the same."""
    now_s = [0.0]
    announcements = Announcements(lambda: now_s[0])
    for at_s, total in ((0.0, 1), (1.0, 5), (30.0, 9), (61.0, 12), (62.0, 12), (63.0, 14)):
        now_s[0] = at_s
        announcements.count("dropped", total, "dropped: {}")
    announcements.count("dropped", 14, "dropped: {}", is_last=True)
    announcements.count("dropped", 14, "dropped: {}", is_last=True)

    assert caplog.messages == ["dropped: 1", "dropped: 12", "dropped: 14"]


def test_nothing_is_said_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A count of zero is no news."""
    Announcements().count("dropped", 0, "dropped: {}", is_last=True)

    assert caplog.messages == []


def test_kinds_do_not_hide_each_other(caplog: pytest.LogCaptureFixture) -> None:
    """Each has a minute of its own, and a line on which nothing acts on a terminal."""
    announcements = Announcements()
    announcements.count("dropped", 1_000, "dropped: {}")
    announcements.count("refused", 1, "refused \x1b[2J\n{}")

    assert caplog.messages == ["dropped: 1,000", r"refused \x1b[2J\n1"]
