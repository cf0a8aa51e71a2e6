"""Can the state be kept, and is what lies there fit to go on from?"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from otel_bridge.cli.findings import Finding, fail, ok, warn
from otel_bridge.cli.progress import kept_dead_letters
from otel_bridge.cli.runs import TAKEN_UP, Run, known_runs
from otel_bridge.errors import StateError
from otel_bridge.state.place import DEAD_LETTERS, can_make, prepare_state_folder
from otel_bridge.state.reading import StateView, read_state

TOPIC = "state"
_LEAST_FREE_BYTES = 64 * 1024 * 1024


def look_at_state(folder: Path) -> StateView | Finding | None:
    """What the folder holds, or what is wrong with it; None when there is nothing. Makes and changes nothing."""
    try:
        if folder.exists():
            prepare_state_folder(folder)
        return read_state(folder, thoroughly=True)
    except StateError as error:
        return fail(TOPIC, str(folder), error.message, error.hint)
    except OSError as error:
        return fail(TOPIC, str(folder), f"cannot be looked at: {error.strerror}", "check its owner and mode")


def check_state(folder: Path, state: StateView | Finding | None) -> Iterator[Finding]:
    """The findings on the folder and on what `look_at_state` gave."""
    subject = str(folder)
    if isinstance(state, Finding):
        yield state
        return
    if not folder.exists() and (problem := can_make(folder)):
        yield fail(TOPIC, subject, problem.message, problem.hint)
        return
    runs = known_runs(folder)
    if state is None:
        nothing = "no state of `otel-bridge tail` in it" if runs else "nothing there yet"
        yield ok(TOPIC, subject, f"{nothing}; it can be written")
    else:
        nobody = "no `otel-bridge tail` runs" if any(run.is_running for run in runs) else "no bridge runs"
        bridge = f"a bridge runs ({state.holder})" if state.holder else nobody
        yield ok(TOPIC, subject, f"sound, and can be written; {bridge}")
        yield from _on_running(subject, state)
    yield from _on_room(folder)
    yield from _on_dead_letters(folder)
    yield from _on_runs(runs)


def _on_running(subject: str, state: StateView) -> Iterator[Finding]:
    if not state.holder:
        return
    if waiting_for := state.run.get("waiting_for"):
        yield warn(TOPIC, subject, f"the bridge waits: {waiting_for}", "see what the check of the endpoint says")
    if held_files := state.run.get("held_files"):
        held = f"the bridge holds {held_files} deleted files until they are read, {state.run.get('held_bytes')} bytes"
        yield warn(TOPIC, subject, held, "their room on the disk is free once the backend has their spans")


def _on_room(folder: Path) -> Iterator[Finding]:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free_bytes = shutil.disk_usage(there).free
    if free_bytes < _LEAST_FREE_BYTES:
        yield warn(TOPIC, str(folder), f"only {free_bytes:,} bytes are free on its disk", "make room")


def _on_dead_letters(folder: Path) -> Iterator[Finding]:
    path = folder / DEAD_LETTERS
    try:
        kept = kept_dead_letters(path)
    except StateError as error:
        yield fail(TOPIC, str(path), error.message, error.hint)
        return
    if kept.spans:
        yield warn(TOPIC, str(path), f"{kept.spans:,} refused spans are kept", "send them again: otel-bridge resend")
    if kept.broken_lines:
        unread = f"{kept.broken_lines:,} of its lines hold no spans (cut off by a kill, or somebody else's)"
        yield warn(TOPIC, str(path), unread, "look at them, and delete them")


def _on_runs(runs: Iterable[Run]) -> Iterator[Finding]:
    for run in runs:
        if run.problem:
            yield warn(TOPIC, run.folder, run.problem, "remove the folder if you do not need its log")
        elif run.is_running:
            yield ok(TOPIC, run.folder, f"a run goes on; it delivers itself what waits: {run.waiting}")
        else:
            yield warn(TOPIC, run.folder, f"a run that ended left {run.waiting}", TAKEN_UP)
