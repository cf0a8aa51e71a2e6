from __future__ import annotations

import inspect

import pytest

from otel_bridge import errors
from otel_bridge.errors import BridgeError, SettingError, SourceError, StateError


def test_one_line() -> None:
    """An error is one line: what is wrong, and the next step if there is one."""
    assert str(BridgeError("cannot read x")) == "cannot read x"
    assert str(BridgeError("cannot read x", "check its mode")) == "cannot read x; check its mode"


@pytest.mark.parametrize(("kind", "code"), [(SettingError, 2), (SourceError, 1), (StateError, 1)])
def test_exit_codes(kind: type[BridgeError], code: int) -> None:
    """A wrong setting is a matter of usage, 2; everything else is 1."""
    assert kind("x").exit_code == code


def test_the_tree_is_drawn() -> None:
    """The picture at the top of the module names every class of the tree."""
    for name, one in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(one, BridgeError)
        assert name in str(errors.__doc__)
