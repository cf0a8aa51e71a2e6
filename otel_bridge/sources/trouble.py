"""Files and folders that cannot be read now: said once each, and once more when they can be read again."""

from __future__ import annotations

import errno

from otel_bridge.sources.files import reason
from otel_bridge.sources.notices import Notice, NoticeKind
from otel_bridge.sources.roster import Roster


class Trouble:
    """What could not be read when it was tried last. Trying goes on in every look."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._paths: set[str] = set()

    def note(self, path: str, error: OSError) -> None:
        """A file or folder cannot be read."""
        if path in self._paths:
            return
        self._paths.add(path)
        step = "raise the limit with `ulimit -n`" if error.errno in (errno.EMFILE, errno.ENFILE) else "trying again"
        text = f"cannot read {path}: {reason(error)}; {step}"
        self._roster.notices.append(Notice(NoticeKind.UNREADABLE, path, text))

    def over(self, path: str) -> None:
        """A file or folder was read."""
        if path in self._paths:
            self._paths.discard(path)
            self._roster.notices.append(Notice(NoticeKind.READABLE_AGAIN, path, f"can read {path} again"))
