"""What names can say about rotation."""

from __future__ import annotations

import pytest

from otel_bridge.sources.names import Rotation, is_log, rotations


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("server.log", ()),
        ("server1.log", (Rotation("server.log", 1),)),
        ("server12.log", (Rotation("server.log", 12), Rotation("server1.log", 2))),
        ("server10.log", (Rotation("server.log", 10),)),
        ("server1.log.gz", (Rotation("server.log", 1),)),
        ("server.log.3", (Rotation("server.log", 3),)),
        ("server.log.3.gz", (Rotation("server.log", 3),)),
        (
            "debug-mcp-server-1231.log",
            (Rotation("debug-mcp-server-12.log", 31), Rotation("debug-mcp-server-123.log", 1)),
        ),
        ("1.log", ()),
        ("server0.log", ()),
        ("server", ()),
    ],
)
def test_every_reading_of_a_name_is_given(name: str, expected: tuple[Rotation, ...]) -> None:
    """A name is read in every way in which it can be a rotated part, shortest log first, and in no other."""
    assert expected == rotations(name)


def test_a_later_date_is_a_newer_part() -> None:
    """Of dated parts the one with the later date has the smaller age."""
    (old,), (new,) = rotations("server.log-20261130"), rotations("server.log-20261201.gz")

    assert (old.root, new.root) == ("server.log", "server.log")
    assert old.age > new.age


@pytest.mark.parametrize("name", ["a.log", "a1.log", "a.log.1", "a.log.1.gz", "a.log-20261130", "a.log.gz"])
def test_logs_and_their_rotated_forms_are_logs(name: str) -> None:
    """A folder's logs are `*.log` and what rotation makes of them."""
    assert is_log(name)


@pytest.mark.parametrize("name", ["a.txt", "log", "a.ndjson", "a.log.swp", "calls.json"])
def test_other_files_are_no_logs(name: str) -> None:
    """Anything else in a folder is left alone."""
    assert not is_log(name)
