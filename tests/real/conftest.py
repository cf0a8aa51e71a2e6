"""The real part that tests share.

The others, `Jaeger`, `Collector`, `Winston` and `DebugClient`, are context managers: a test starts its own, and
whatever it started is gone at the end. A test names what it needs: `pytest.mark.real("jaeger", "server")`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.jaeger import Jaeger


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """A Jaeger in memory, one a worker: look at trace ids that are the test's own, and do not stop it."""
    with Jaeger(tmp_path_factory.mktemp("jaeger")) as shared:
        yield shared
