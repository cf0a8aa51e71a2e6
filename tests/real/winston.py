"""The real winston, which the server logs with, writing and rotating a log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.real.parts import part
from tests.real.program import Program
from tests.waiting import wait_until

ROTATE = Path(__file__).parent / "programs" / "rotate.cjs"


class Winston(Program):
    """A process that logs numbered calls and responses to `file`, and rotates it as the server does.

    They are numbered from 0 in the field `seq`. Three files of about `max_bytes` each are kept (`x.log`, `x1.log`,
    `x2.log`: a higher number is older). 0 entries a second means as fast as it can. With `leave` it exits without
    waiting for the file, as the server does.
    """

    def __init__(
        self,
        file: Path,
        *,
        max_bytes: int,
        count: int,
        entries_per_second: int = 0,
        pad_bytes: int = 0,
        leave: bool = False,
        output: Path | None = None,
    ) -> None:
        words = [*map(str, (max_bytes, entries_per_second, count, pad_bytes)), *(["leave"] if leave else [])]
        super().__init__(
            ["node", ROTATE, file, *words],
            output or file.with_suffix(".out"),
            {"NODE_PATH": str(part("winston").parent.parent)},
        )

    def wait(self, deadline_s: float = 90.0) -> tuple[int, str]:
        """Waits for its end; returns how many entries it logged and the id of their session."""
        wait_until(lambda: not self.running, "winston has logged everything", deadline_s)
        assert self.process is not None
        assert self.process.returncode == 0, self.output
        said = json.loads(self.output)
        return said["logged"], said["sessionId"]
