"""The follower against a model: whatever happens to the files, all lines that can be read come out, in order, once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from otel_bridge.sources import Caps
from tests.sources.world import World


class Following(RuleBasedStateMachine):
    """A log that is written, rotated, truncated and deleted while a reader looks, reads, commits and crashes."""

    caps: Caps | None = None
    renames = False
    copies = False
    cuts = False
    seconds = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.folder, self.caps)

    def prepare(self) -> None:
        """What comes before a file can lose its name."""

    @rule(count=st.integers(1, 5), pad=st.sampled_from([0, 0, 300, 2_000]))
    def write(self, count: int, pad: int) -> None:
        self.world.write(count, pad)

    @rule()
    def write_huge(self) -> None:
        self.world.write(1, 400_000)

    @rule(pad=st.sampled_from([0, 1_000, 300_000]))
    def write_half(self, pad: int) -> None:
        self.world.write_half(pad)

    @precondition(lambda self: self.renames)
    @rule(whole=st.booleans())
    def rotate(self, whole: bool) -> None:
        self.prepare()
        self.world.rotate(whole)

    @precondition(lambda self: self.copies)
    @rule(between=st.integers(0, 2), look_between=st.booleans())
    def copy_and_truncate(self, between: int, look_between: bool) -> None:
        self.world.copy_and_truncate(between, look_between)

    @precondition(lambda self: self.cuts)
    @rule()
    def truncate(self) -> None:
        self.world.truncate()

    @rule()
    def delete(self) -> None:
        self.prepare()
        self.world.delete()

    @precondition(lambda self: self.seconds)
    @rule()
    def second_writer(self) -> None:
        self.world.start_second_writer()

    @rule(count=st.integers(1, 3))
    def write_second(self, count: int) -> None:
        self.world.write_second(count)

    @rule()
    def look(self) -> None:
        self.world.look()

    @rule(max_bytes=st.sampled_from([100, 2_000, 100_000, 1 << 20]))
    def read(self, max_bytes: int) -> None:
        self.world.read(max_bytes)

    @rule()
    def commit(self) -> None:
        self.world.commit()

    @rule(seconds=st.sampled_from([0.2, 1.0, 3.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.world.clock.now_s += seconds

    @rule()
    def crash(self) -> None:
        self.world.crash()

    def teardown(self) -> None:
        try:
            self.world.finish()
            self.world.check()
            if not self.copies:
                self.world.check_losses()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)


class Renaming(Following):
    renames = True


class Capped(Following):
    """Whatever is read is closed at once, so that inode numbers are used again; nothing is lost by it."""

    caps = Caps(held_files=0, open_files=1)
    renames = True

    def prepare(self) -> None:
        self.world.finish_half()
        self.world.drain()


class TwoWriters(Following):
    renames = True
    seconds = True


class Cutting(Following):
    cuts = True
    renames = True


class Copying(Following):
    copies = True
    cuts = True


_SETTINGS = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    database=None,
)

RenamingTest = Renaming.TestCase
RenamingTest.settings = _SETTINGS
CappedTest = Capped.TestCase
CappedTest.settings = _SETTINGS
TwoWritersTest = TwoWriters.TestCase
TwoWritersTest.settings = _SETTINGS
CuttingTest = Cutting.TestCase
CuttingTest.settings = _SETTINGS
CopyingTest = Copying.TestCase
CopyingTest.settings = _SETTINGS
