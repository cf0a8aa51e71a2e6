"""What a run has heard of its calls, written down before any of it is sent.

A worker that is killed between a backend's word and its own commit has sent spans that its state does not know of. The
next run knows them from here: it sends the same spans again, under the same ids, and not others from the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import orjson

from otel_bridge.errors import StateError
from otel_bridge.pipeline.announcements import Announcer
from otel_bridge.sessions.frame_call import FrameCall
from otel_bridge.sessions.frame_saved import call_from_json, heard_to_json
from otel_bridge.sessions.saved_values import object_of
from otel_bridge.state.place import open_own_file, reason

JOURNAL = "calls.jsonl"
CUT_AT_BYTES = 1 << 20


class Journal:
    """A file of one line a change of a call; where it cannot be written that is said once, and the run goes on."""

    def __init__(self, folder: Path, announcer: Announcer) -> None:
        """Raises StateError when the file cannot be made."""
        self._path = folder / JOURNAL
        self._announcer = announcer
        self._descriptor = open_own_file(self._path)
        self._size_bytes = 0

    def note(self, calls: Iterable[FrameCall]) -> None:
        """Write calls down as they are now; with the process they can be lost no more, with the machine they can."""
        lines = [orjson.dumps(heard_to_json(call)) + b"\n" for call in calls]
        if not lines or self._descriptor < 0:
            return
        data = b"".join(lines)
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            self._give_up(error)
            return
        self._size_bytes += written
        if written < len(data):
            self._give_up(OSError(0, "it takes no more"))

    def cut(self) -> None:
        """Forget all calls, once there are many: none is in flight, and all that was sent is committed."""
        if self._descriptor >= 0 and self._size_bytes >= CUT_AT_BYTES:
            try:
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
            except OSError as error:
                self._give_up(error)
            else:
                self._size_bytes = 0

    def _give_up(self, error: OSError) -> None:
        text = (
            f"cannot write {self._path}: {reason(error)}; if this process is killed, the last calls may be sent twice"
        )
        self._announcer.once(text)
        os.close(self._descriptor)
        self._descriptor = -1


def journaled_calls(folder: Path) -> list[FrameCall]:
    """The calls that a run's journal holds, each as it was last, in their order; half a line at its end is left out.

    Raises StateError when the file cannot be read.
    """
    path = folder / JOURNAL
    if not path.exists():
        return []
    descriptor = open_own_file(path)
    with os.fdopen(descriptor, "rb") as file:
        try:
            lines = file.read().split(b"\n")[:-1]
        except OSError as error:
            raise StateError(f"cannot read {path}: {reason(error)}", "check its owner and mode") from error
    calls: dict[bytes, FrameCall] = {}
    for line in lines:
        try:
            call = call_from_json(object_of(orjson.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"{path} is damaged ({error})", f"remove {folder} if you do not need its log") from error
        calls[call.opener] = call
    return sorted(calls.values(), key=lambda call: call.order)
