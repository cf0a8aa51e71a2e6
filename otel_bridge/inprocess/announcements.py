"""What the bridge says in its host: warnings of the logger `otel_bridge`, never from a thread of the host's."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from otel_bridge.view.escape import printable

LOGGER = logging.getLogger("otel_bridge")
REPEAT_AFTER_S = 60.0


class Announcements:
    """Says things that repeat once, then once a minute with their number. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Say a thing that does not repeat."""
        LOGGER.warning("%s", printable(text))

    def count(self, kind: str, total: int, text: str, *, is_last: bool = False) -> None:
        """Say `text` with `total` in the place of its `{}`, if that is more of the `kind` than was said last.

        At the first time, then once a minute; `is_last` does not wait for the minute.
        """
        now_s = self._clock()
        with self._lock:
            said_at_s, said = self._said.get(kind, (-REPEAT_AFTER_S, 0))
            if total <= said or (now_s - said_at_s < REPEAT_AFTER_S and said and not is_last):
                return
            self._said[kind] = now_s, total
        self.say(text.replace("{}", f"{total:,}", 1))
