"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_MS = 1_000_000
_S = 1_000 * _MS


def duration(duration_ns: int, *, ascii_only: bool = False) -> str:
    """Three digits and a unit below a minute (`850 µs`, `4.34 s`), two units above (`1 min 05 s`, `2 h 03 min`)."""
    if duration_ns < 999_500:
        return f"{duration_ns / 1_000:.3g} {'us' if ascii_only else 'µs'}"
    if duration_ns < 999_500_000:
        return f"{duration_ns / _MS:.3g} ms"
    if duration_ns < 59_950_000_000:
        return f"{duration_ns / _S:.{2 if duration_ns < 9_995_000_000 else 1}f} s"
    seconds = round(duration_ns / _S)
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(minutes / 60)
    return f"{hours // 24} d {hours % 24:02} h"


def span_duration(duration_ns: int, *, ascii_only: bool = False) -> str:
    """A span's duration. The log counts in ms: its shortest spans were raised to 1 µs, which nobody measured."""
    return "<1 ms" if duration_ns <= 1_000 else duration(duration_ns, ascii_only=ascii_only)


def moment(time_ns: int) -> str:
    """A Unix time as date and time in UTC, to the millisecond."""
    shown = datetime.fromtimestamp(time_ns // _S, UTC)
    return f"{shown:%Y-%m-%d %H:%M:%S}.{time_ns % _S // _MS:03} UTC"
