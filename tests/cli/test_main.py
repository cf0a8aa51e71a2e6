"""The command itself: what is asked of no command in particular."""

from __future__ import annotations

from tests.cli.running import run


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant() -> None:
    """As a mistake of usage; without a command like it, nothing is guessed."""
    near, far = run("tial"), run("xyz")

    assert (near.status, far.status) == (2, 2)
    assert "No such command 'tial'. Did you mean 'tail'?" in near.err
    assert "Did you mean" not in far.err
