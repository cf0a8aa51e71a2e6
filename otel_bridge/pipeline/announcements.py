"""What the bridge says on stderr: bad days once, then once a minute with counts; never silence, never a flood."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from otel_bridge.entries.entry import Malformed
from otel_bridge.view.escape import printable

REPEAT_AFTER_S = 60.0


@dataclass(slots=True)
class _Said:
    at_s: float
    text: str
    unsaid: int = 0


class Announcer:
    """Writes messages, one line each, with everything in them that a terminal would act on escaped.

    Safe to use from several threads. `write` takes a line without its newline; `clock` gives seconds that only grow.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._lock = threading.Lock()

    def once(self, text: str) -> None:
        """Says a thing that does not repeat."""
        with self._lock:
            self._write(f"otel-bridge: {printable(text)}")

    def repeated(self, key: str, text: str) -> None:
        """Says a thing of the kind `key` now, or, when its kind was said less than a minute ago, counts it."""
        now_s = self._clock()
        with self._lock:
            said = self._said.get(key)
            if said is not None and now_s - said.at_s < REPEAT_AFTER_S:
                said.unsaid += 1
                said.text = text
                return
            more = f" ({said.unsaid} more like this before it)" if said and said.unsaid else ""
            self._said[key] = _Said(now_s, text)
            self._write(f"otel-bridge: {printable(text)}{more}")

    def flush(self, *, final: bool = False) -> None:
        """Says the counts that are due; with `final` all that were never said."""
        now_s = self._clock()
        with self._lock:
            for said in self._said.values():
                if said.unsaid and (final or now_s - said.at_s >= REPEAT_AFTER_S):
                    self._write(f"otel-bridge: {printable(said.text)} (the last of {said.unsaid} more like this)")
                    said.at_s, said.unsaid = now_s, 0

    def malformed(self, line: Malformed) -> None:
        """Says that a line was skipped, and where it is: once a file and kind, then once a minute with a count."""
        self.repeated(
            f"malformed {line.path} {line.flaw}",
            f"{line.path}: skipped the line at byte {line.start_byte}: {line.flaw}",
        )
