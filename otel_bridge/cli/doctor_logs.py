"""Are there logs, can they be read, and do they hold what becomes a trace?"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from otel_bridge.cli.findings import Finding, fail, ok, warn
from otel_bridge.cli.progress import FollowedFile
from otel_bridge.entries.entry import Entry, Malformed
from otel_bridge.entries.reader import EntryReader
from otel_bridge.errors import SourceError
from otel_bridge.sources.discovery import default_folders
from otel_bridge.sources.files import Handle, LocalFiles, NotRegularError, is_file, reason
from otel_bridge.sources.places import Scan, Sighting
from otel_bridge.sources.replay import order_files
from otel_bridge.view.units import duration

TOPIC = "log"
_HEAD_BYTES = 4 * 1024 * 1024
_END_BYTES = 1024 * 1024
_BLOCK_BYTES = 256 * 1024

_ERRORS_ALONE = frozenset({"tool:error", "tool:evaluate_expression:error"})
"""The kinds that a server still writes at the levels warn and error."""

_AT_INFO = "start the server with --log-level info (or debug)"


@dataclass(frozen=True, slots=True)
class Sample:
    """What the beginning and the end of a file hold: entries by kind, flaws, and the latest time among them."""

    size_bytes: int
    kinds: Counter[str]
    flaws: Counter[str]
    last_ms: int | None


def check_logs(patterns: Sequence[str], followed: Sequence[FollowedFile], now_ms: int, *, named: bool) -> list[Finding]:
    """The findings on all logs in these places; `named` says that a person gave them.

    `followed` is what the state knows of files, for what is behind in each.
    """
    found: dict[str, Sighting] = {}
    findings: list[Finding] = []
    wanted: set[str] = set()
    for places in [[pattern] for pattern in patterns] if named else [patterns]:
        scan = Scan(LocalFiles())
        scan.expand(places)
        here, unlisted, _ = scan.look(0.0)
        found |= {sighting.path: sighting for sighting in here if sighting.own}
        if named and is_file(*places):
            wanted |= {sighting.path for sighting in here}
        problems = [_unlisted(folder, error) for folder, error in unlisted.items() if named or not _is_missing(error)]
        if not any(sighting.own for sighting in here) and not problems:
            problems.append(_nothing_there(places, named=named))
        findings += problems
    samples: dict[str, Sample] = {}
    for path in found:
        if not named and _is_anothers(path):
            findings.append(ok(TOPIC, path, "another user's log: `tail` follows it only when it is named"))
            continue
        sample = _sample(path)
        if isinstance(sample, Sample):
            samples[path] = sample
        else:
            findings.append(sample)
    if not any(sample.kinds for sample in samples.values()):
        wanted |= samples.keys()
    try:
        chains = order_files(samples)
    except SourceError as error:  # gone or closed since it was sampled
        return [*findings, fail(TOPIC, "", error.message, error.hint)]
    for chain in chains:
        parts = {path: samples[path] for path in chain.files}
        is_wanted = not wanted.isdisjoint(parts)
        findings += _on_chain(chain.name, parts, followed, now_ms, is_wanted=is_wanted)
    return findings


def _unlisted(folder: str, error: OSError) -> Finding:
    return fail(TOPIC, folder, f"cannot be listed: {reason(error)}", "check that it is there and may be read")


def _is_anothers(path: str) -> bool:
    try:
        return LocalFiles().stat(path).owner != os.getuid()
    except OSError:  # gone by now: reading it says so
        return False


def _is_missing(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def _nothing_there(places: Sequence[str], *, named: bool) -> Finding:
    where = ", ".join(places)
    if not named:
        text = "no log where the server writes it by default"
        looked = ", ".join(default_folders(os.environ, Path.home(), Path.cwd()))
        return warn(TOPIC, where, text, f"start the server, or give the path of its log; looked in {looked}")
    if is_file(where):
        return fail(TOPIC, where, "no log that grows", "a packed one is read by `otel-bridge replay`")
    return fail(TOPIC, where, "there is no log", "check the path; `tail` waits for a log to appear there")


def _on_chain(
    name: str, parts: dict[str, Sample], followed: Sequence[FollowedFile], now_ms: int, *, is_wanted: bool
) -> Iterator[Finding]:
    kinds = sum((part.kinds for part in parts.values()), Counter[str]())
    flaws = sum((part.flaws for part in parts.values()), Counter[str]())
    size_bytes = sum(part.size_bytes for part in parts.values())
    if not kinds:
        yield _on_nothing_structured(name, size_bytes, is_wanted=is_wanted)
        return
    last_ms = max(part.last_ms for part in parts.values() if part.last_ms is not None)
    age = duration(max(0, now_ms - last_ms) * 1_000_000)
    text = f"structured, {_files(len(parts))}, {size_bytes:,} bytes, last entry {age} ago; {_behind(parts, followed)}"
    if set(kinds) <= _ERRORS_ALONE:
        yield warn(TOPIC, name, f"{text}; it holds errors alone, so there will be no sessions", _AT_INFO)
    else:
        yield ok(TOPIC, name, text)
    if flaws:
        named = ", ".join(f"{flaw} {count:,}" for flaw, count in flaws.items())
        yield warn(TOPIC, name, f"some structured lines cannot be read: {named}", "`tail` names each with its place")


def _on_nothing_structured(name: str, size_bytes: int, *, is_wanted: bool) -> Finding:
    if not size_bytes:
        return warn(TOPIC, name, "empty so far", f"use the server; if it stays empty, {_AT_INFO}")
    text = "no structured entry at its beginning or end"
    if is_wanted:
        return fail(TOPIC, name, text, f"give the server's own log, not a proxy's; {_AT_INFO}")
    return ok(TOPIC, name, f"{text}: not a server's log, it gives no spans")


def _behind(parts: dict[str, Sample], followed: Sequence[FollowedFile]) -> str:
    mine = [file for file in followed if file.path in parts]
    if not mine:
        return "not followed yet"
    chains = ", ".join(sorted({file.chain for file in mine}))
    return f"followed as {chains}, {sum(file.lag_bytes for file in mine):,} bytes behind"


def _sample(path: str) -> Sample | Finding:
    try:
        handle = LocalFiles().open(path)
    except NotRegularError:
        return warn(TOPIC, path, "not a regular file, so it is not read", "give the file that the server writes")
    except OSError as error:
        return fail(
            TOPIC, path, f"cannot be read: {reason(error)}", "run this as the server's user, or change its mode"
        )
    try:
        return _sampled(path, handle)
    except OSError as error:
        return fail(TOPIC, path, f"cannot be read: {reason(error)}", "check its disk")
    finally:
        handle.close()


def _sampled(path: str, handle: Handle) -> Sample:
    size_bytes = handle.stat().size_bytes
    kinds: Counter[str] = Counter()
    flaws: Counter[str] = Counter()
    times_ms: list[int] = []
    end_byte = max(_HEAD_BYTES, size_bytes - _END_BYTES)
    for start_byte, stop_byte in ((0, min(size_bytes, _HEAD_BYTES)), (end_byte, size_bytes)):
        # The first line of a part in the middle is cut: what is wrong with it is no flaw of the log.
        reader = EntryReader(path, start_byte=start_byte)
        for offset in range(start_byte, stop_byte, _BLOCK_BYTES):
            for item in reader.feed(handle.pread(min(_BLOCK_BYTES, stop_byte - offset), offset)):
                match item:
                    case Entry(kind=kind, time_ms=time_ms):
                        kinds[kind] += 1
                        times_ms.append(time_ms)
                    case Malformed(flaw=flaw, start_byte=line_byte) if line_byte != end_byte:
                        flaws[flaw] += 1
    return Sample(size_bytes, kinds, flaws, max(times_ms, default=None))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
