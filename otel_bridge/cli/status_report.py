"""What `otel-bridge status` shows, as one value, and its two forms for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from otel_bridge.cli.progress import FollowedFile, Kept, followed_files, kept_dead_letters
from otel_bridge.cli.runs import Run, known_runs
from otel_bridge.state.lock import Holder
from otel_bridge.state.place import DEAD_LETTERS
from otel_bridge.state.reading import OpenSession, StateView
from otel_bridge.view.escape import printable


@dataclass(frozen=True, slots=True)
class Status:
    """All that is shown. Times are Unix ms, `now_ms` this machine's clock; totals count since the state began."""

    state_dir: str
    has_state: bool
    now_ms: int
    holder: Holder | None
    endpoint: str
    waiting_for: str
    delivered_spans: int
    refused_spans: int
    lost_spans: int
    kept: Kept
    lost_bytes: Mapping[str, int]
    malformed_lines: Mapping[str, int]
    last_error: Mapping[str, object]
    held_files: int
    held_bytes: int
    files: tuple[FollowedFile, ...]
    sessions: tuple[OpenSession, ...]
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, folder: Path, view: StateView | None, now_ms: int) -> Status:
        """The status of what a state folder holds. Raises StateError for what cannot be read."""
        runs = known_runs(folder)
        kept = kept_dead_letters(folder / DEAD_LETTERS)
        if view is None:
            return cls(str(folder), False, now_ms, None, "", "", 0, 0, 0, kept, {}, {}, {}, 0, 0, (), (), runs)
        run = view.run
        # What a bridge waited for, and held open, when it ended is no news.
        now = run if view.holder else {}
        return cls(
            state_dir=str(folder),
            has_state=True,
            now_ms=now_ms,
            holder=view.holder,
            endpoint=str(run.get("endpoint", "")),
            waiting_for=str(now.get("waiting_for", "")),
            delivered_spans=view.total("delivered_spans"),
            refused_spans=view.total("refused_spans"),
            lost_spans=view.total("lost_spans"),
            kept=kept,
            lost_bytes=view.by_detail("lost_bytes"),
            malformed_lines=view.by_detail("malformed_lines"),
            last_error=view.last_error,
            held_files=int(str(now.get("held_files", 0))),
            held_bytes=int(str(now.get("held_bytes", 0))),
            files=tuple(followed_files(view.checkpoints, view.path)),
            sessions=view.sessions,
            runs=runs,
        )

    @property
    def live_runs(self) -> int:
        """How many runs are going on: each is a bridge too, with a row of its own and no part in the totals."""
        return sum(run.is_running for run in self.runs)

    @property
    def is_running(self) -> bool:
        """Whether a bridge works on this folder: one that holds it, or one in a run."""
        return self.holder is not None or self.live_runs > 0

    @property
    def lag_bytes(self) -> int:
        """Bytes in all files that are not delivered."""
        return sum(file.lag_bytes for file in self.files)

    @property
    def lag_s(self) -> float:
        """How far delivery is behind the clock: the age of the last delivered entry of a file with more in it."""
        return max((self.age_s(file.last_entry_ms) or 0.0 for file in self.files if file.lag_bytes), default=0.0)

    def age_s(self, time_ms: object) -> float | None:
        """Seconds since a Unix time; None for None. A log's clock may be ahead of ours: never below 0."""
        return max(0.0, (self.now_ms - time_ms) / 1000) if isinstance(time_ms, int) else None

    def to_json(self) -> dict[str, object]:
        """What `--json` prints."""
        return {
            "state_dir": self.state_dir,
            "running": self.is_running,
            "pid": self.holder.pid if self.holder else None,
            "endpoint": self.endpoint,
            "waiting_for": self.waiting_for,
            "delivered_spans": self.delivered_spans,
            "refused_spans": self.refused_spans,
            "lost_spans": self.lost_spans,
            "dead_letters": asdict(self.kept),
            "lost_bytes": dict(self.lost_bytes),
            "malformed_lines": dict(self.malformed_lines),
            "last_error": dict(self.last_error) or None,
            "held_files": self.held_files,
            "held_bytes": self.held_bytes,
            "lag_bytes": self.lag_bytes,
            "lag_s": self.lag_s,
            "files": [{**asdict(file), "lag_bytes": file.lag_bytes} for file in self.files],
            "sessions": [asdict(session) for session in self.sessions],
            "runs": [asdict(run) for run in self.runs],
        }


def tab_separated(status: Status) -> Iterator[str]:
    """A line a fact: its name, then its values. Text is escaped, so that a line has no tabs but these."""
    yield _line("state_dir", status.state_dir)
    pid = (status.holder.pid if status.holder else None) or ""
    yield _line("bridge", *(("running", pid) if status.is_running else ("not running",)))
    yield _line("endpoint", status.endpoint)
    yield _line("waiting_for", status.waiting_for)
    yield _line("delivered_spans", status.delivered_spans)
    yield _line("refused_spans", status.refused_spans)
    yield _line("lost_spans", status.lost_spans)
    yield _line("dead_letters", status.kept.letters, status.kept.spans, status.kept.broken_lines)
    for kind, lost_bytes in status.lost_bytes.items():
        yield _line("lost_bytes", kind, lost_bytes)
    for flaw, lines in status.malformed_lines.items():
        yield _line("malformed_lines", flaw, lines)
    if status.last_error:
        yield _line("last_error", status.last_error.get("time_ms"), status.last_error.get("message"))
    yield _line("held", status.held_files, status.held_bytes)
    yield _line("lag", status.lag_bytes, f"{status.lag_s:.0f}")
    for file in status.files:
        last_ms = "" if file.last_entry_ms is None else file.last_entry_ms
        yield _line("file", file.path, file.offset_bytes, file.size_bytes, file.lag_bytes, last_ms)
    for session in status.sessions:
        yield _line("session", session.session_id, session.name, session.language, session.began_ms, session.last_ms)
    for run in status.runs:
        state = "running" if run.is_running else "waiting"
        yield _line("run", run.folder, state, run.started_ms or "", run.log, run.behind_bytes, run.open_sessions)
        if run.problem:
            yield _line("run_problem", run.folder, run.problem)


def _line(*cells: object) -> str:
    return "\t".join(printable(str(cell)) for cell in cells)
