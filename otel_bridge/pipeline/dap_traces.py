"""Which DAP traces a tail follows: those of the sessions that its logs speak of."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from otel_bridge.sessions.log_mapping import LogMapping
from otel_bridge.sessions.span import Span
from otel_bridge.sources.dap_traces import traces_of, trees

CALLS_KEPT = 200
"""Ended calls of a session that are remembered until its trace is found, which takes a few seconds."""

QUIET_S = 10.0
"""How long after its session's end, read up to its own end, a trace may still grow."""


@dataclass(slots=True)
class DapTraces:
    """The trace files to follow. `given` are files and folders besides the server's own trees.

    `paths` is read by the thread that looks, and only ever replaced.
    """

    given: tuple[Path, ...] = ()
    monotonic_s: Callable[[], float] = time.monotonic
    paths: tuple[str, ...] = ()
    _by_session: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _alive_s: dict[str, float] = field(default_factory=dict)

    def calls_kept(self, log: str) -> int:
        """How many ended calls of a session to remember for a trace; 0 where this log can have none."""
        return CALLS_KEPT if self.given or trees([log]) else 0

    def check(self, mapping: LogMapping, logs: Iterable[str], behind: Collection[str]) -> list[Span]:
        """Looks for traces of the mapping's sessions; gives what is final because no more of a trace will come.

        `logs` are the paths of the mapping's log, `behind` those of all files that are not read to their end.
        """
        if not mapping.dap:
            return []
        now_s = self.monotonic_s()
        roots = trees(logs)
        over: list[str] = []
        for session_id in mapping.dap:
            is_unread = any(path in behind for path in self._by_session.get(session_id, ()))
            if session_id in mapping.sessions or is_unread:
                self._alive_s[session_id] = now_s
            if now_s - self._alive_s.setdefault(session_id, now_s) < QUIET_S:
                self._by_session[session_id] = tuple(traces_of(session_id, roots, self.given))
            else:
                over.append(session_id)
        for session_id in over:
            self._by_session.pop(session_id, None)
            self._alive_s.pop(session_id, None)
        self.paths = tuple(path for paths in self._by_session.values() for path in paths)
        return mapping.close_dap(over)
