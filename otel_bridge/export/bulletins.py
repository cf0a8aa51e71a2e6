"""What is said of bad days: once, then once a minute with counts; never silence, never a flood."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from otel_bridge.export.retry import HOUR_S, RetryPolicy

STILL_TRYING = "nothing is lost, still trying"
"""What a bulletin about trouble promises, because a delivery does so for ever; who ends it earlier must not say it."""


class BulletinKind(StrEnum):
    """What a bulletin is about."""

    TROUBLE = "trouble"
    RECOVERED = "recovered"
    REFUSED = "refused"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Bulletin:
    """One line for people, free of control characters; `spans` is the number of spans that it speaks of."""

    kind: BulletinKind
    text: str
    spans: int = 0


@dataclass(slots=True)
class _Counted:
    """Things of one kind that happen again and again: the first is due at once, the next ones together."""

    count: int = 0
    said_at_s: float | None = None
    text: str = ""

    def due_s(self, every_s: float) -> float | None:
        if not self.count:
            return None
        return 0.0 if self.said_at_s is None else self.said_at_s + every_s


@dataclass(slots=True)
class Bulletins:
    """Collects what happens and gives out what is to be said now. `endpoint` is shown as it is.

    Times are seconds of one clock that only goes forward.
    """

    endpoint: str
    policy: RetryPolicy
    _reason: str = ""
    _since_s: float = 0.0
    _due_s: float | None = None
    _is_said: bool = False
    _refused: _Counted = field(default_factory=_Counted)
    _warned: _Counted = field(default_factory=_Counted)

    @property
    def trouble(self) -> str:
        """Why nothing is delivered at the moment; empty if all is well."""
        return self._reason

    def fail(self, reason: str, now_s: float, *, needs_action: bool) -> None:
        """Nothing got through. `needs_action`: it stays so until somebody acts, so it is said at once."""
        if not self._reason:
            self._since_s = now_s
            self._is_said = False
        if self._due_s is None or (needs_action and not self._is_said):
            self._due_s = now_s if needs_action else self._since_s + self.policy.warn_after_s
        self._reason = reason

    def succeed(self) -> None:
        """Something got through: the trouble is over."""
        if self._reason:
            self._reason = ""
            self._due_s = 0.0 if self._is_said else None

    def refuse(self, count: int, text: str) -> None:
        """`count` spans were refused, for the reason in `text`."""
        self._refused.count += count
        self._refused.text = text

    def warn(self, text: str) -> None:
        """The backend took the spans but said `text`."""
        self._warned.count += 1
        self._warned.text = text

    def next_s(self) -> float | None:
        """When the next bulletin is due, if nothing new happens; None if none is."""
        every_s = self.policy.warn_every_s
        dues = [self._due_s, self._refused.due_s(every_s), self._warned.due_s(every_s)]
        return min((due_s for due_s in dues if due_s is not None), default=None)

    def take(self, now_s: float, waiting_spans: int, lag_s: float, *, is_last: bool = False) -> list[Bulletin]:
        """What is to be said now, each line once. `is_last`: also what would have waited for its minute."""
        out: list[Bulletin] = []
        if self._due_s is not None and now_s >= self._due_s:
            out.append(self._about_trouble(now_s, waiting_spans, lag_s))
        every_s = self.policy.warn_every_s
        for counted, kind in ((self._refused, BulletinKind.REFUSED), (self._warned, BulletinKind.WARNING)):
            due_s = counted.due_s(every_s)
            if due_s is not None and (is_last or now_s >= due_s):
                if kind is BulletinKind.REFUSED:
                    text = f"{self.endpoint} refused {_spans(counted.count)}: {counted.text}"
                else:
                    times = f" ({counted.count} times)" if counted.count > 1 else ""
                    text = f"{self.endpoint} took the spans but says{times}: {counted.text}"
                out.append(Bulletin(kind, text, counted.count))
                counted.count = 0
                counted.said_at_s = now_s
        return out

    def _about_trouble(self, now_s: float, waiting_spans: int, lag_s: float) -> Bulletin:
        lasted_s = now_s - self._since_s
        if not self._reason:
            self._due_s = None
            return Bulletin(
                BulletinKind.RECOVERED, f"{self.endpoint} takes spans again, after {_duration(lasted_s)}", 0
            )
        self._due_s = now_s + self.policy.warn_every_s
        text = f"delivery to {self.endpoint} waits"
        if lasted_s >= 1:
            text += f", for {_duration(lasted_s)} now"
        text += f": {self._reason}; {_spans(waiting_spans)} in the air"
        if lag_s >= 1:
            text += f", the oldest for {_duration(lag_s)}"
        text += f"; {STILL_TRYING}"
        if lag_s >= HOUR_S:
            text += "; some stores drop spans that come more than an hour late"
        self._is_said = True
        return Bulletin(BulletinKind.TROUBLE, text, waiting_spans)


def _spans(count: int) -> str:
    return "1 span" if count == 1 else f"{count:,} spans"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * HOUR_S else f"{seconds / HOUR_S:.1f} h"
