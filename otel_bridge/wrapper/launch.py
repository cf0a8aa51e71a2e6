"""One run from its beginning to its end: the server, the worker beside it, the pump between client and server."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from otel_bridge.errors import StateError
from otel_bridge.sessions.capture import Capture
from otel_bridge.state.place import state_folder
from otel_bridge.wrapper.child import FORWARDED, CannotStartError, Child, end_as
from otel_bridge.wrapper.command import is_debugger, log_file_of, with_log_file
from otel_bridge.wrapper.feed import Feed
from otel_bridge.wrapper.pump import WORKER_GONE, Pump
from otel_bridge.wrapper.records import Configuration
from otel_bridge.wrapper.run_folder import RunFolder
from otel_bridge.wrapper.signals import Signals
from otel_bridge.wrapper.stderr import Stderr

DELIVERY_S = 5.0
"""How long the worker has to deliver what is left once the server has ended."""
_PATIENCE_S = DELIVERY_S + 1.0
_WORKER = "otel_bridge.wrapper.worker"


def run(
    command: Sequence[str], options: Mapping[str, object], state_dir: Path | None, *, join_caller: bool, why_not: str
) -> NoReturn:
    """Start the server, pump until it ends, and end as it did.

    `options` are the export and mapping options as they were given, as JSON values. `why_not` says why nothing is to be
    exported; empty if something is. Whatever goes wrong with the export is said on stderr, and the pipe works without.
    """
    _keep_standard_descriptors()
    stderr = Stderr()
    signals = Signals(FORWARDED)
    folder, words = None, command
    state = None if why_not else _known_state_folder(state_dir, stderr)
    if why_not:
        stderr.say(why_not)
    elif is_debugger(command) and state:  # a server that is no debugger needs no folder
        folder, words = _prepare(command, state, Capture[str(options["capture"]).upper()], stderr)
    try:
        child = Child.start(words)
    except CannotStartError as error:
        stderr.say(str(error))
        if folder:
            with contextlib.suppress(StateError):  # there is nothing in it
                folder.remove()
            folder.release()
        end_as(error.exit_code)
    values = {
        "options": dict(options),
        "join_caller": join_caller,
        "state_dir": str(state) if state else None,
        "is_debugger": is_debugger(command),
        "server": child.process.pid,
        "pump": os.getpid(),
        "folder": str(folder.path) if folder else None,
        "lock": folder.lock if folder else None,
        "delivery_s": DELIVERY_S,
    }
    worker, feed = (None, Feed(-1)) if why_not else _start_worker(folder, stderr)
    signals.tell_senders()
    feed.tell(Configuration(values))
    exit_code = Pump(child, feed, signals, stderr).run()
    if worker:
        _wait_for(worker, feed, signals)
        if worker.returncode:
            stderr.say(WORKER_GONE)
    if folder:
        folder.release()
    end_as(exit_code)


def _keep_standard_descriptors() -> None:
    """Where one of the three was closed, the next pipe would get its number, and be taken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _known_state_folder(state_dir: Path | None, stderr: Stderr) -> Path | None:
    try:
        return state_folder(state_dir)
    except StateError as error:
        stderr.say(f"{error}; calls are exported, states of the debugged program are not")
        return None


def _prepare(
    command: Sequence[str], state: Path, capture: Capture, stderr: Stderr
) -> tuple[RunFolder | None, Sequence[str]]:
    """The folder of this run, and the command with a log file."""
    try:
        log = log_file_of(command)
        folder = RunFolder.create(state, log, time.time_ns() // 1_000_000, capture)
    except StateError as error:
        stderr.say(f"{error}; calls are exported, states of the debugged program are not")
        return None, command
    try:
        if folder.is_log_claimed():
            stderr.say(
                f"another run follows {log} too: both will export the sessions of both, some spans twice;"
                " give each server a --log-file of its own, or none"
            )
        folder.claim_log()
    except StateError as error:
        stderr.say(str(error))
    return folder, command if log else with_log_file(command, folder.description().log)


def _start_worker(folder: RunFolder | None, stderr: Stderr) -> tuple[subprocess.Popen[bytes] | None, Feed]:
    """The worker, in a session of its own: what ends the server's group must not end the delivery of its last spans."""
    theirs, ours = os.pipe()
    feed = Feed(ours)
    try:
        # -P: a client starts its servers in the user's project, whose modules are not ours.
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", _WORKER],
            stdin=theirs,
            stdout=2,
            start_new_session=True,
            pass_fds=(folder.lock,) if folder else (),
        )
    except OSError as error:
        stderr.say(f"nothing is exported: cannot start {sys.executable}: {(error.strerror or str(error)).lower()}")
        feed.close()
        return None, feed
    finally:
        os.close(theirs)
    return worker, feed


def _wait_for(worker: subprocess.Popen[bytes], feed: Feed, signals: Signals) -> None:
    """Wait until all is delivered or the time for it is over; no longer than the first signal."""
    end_s = time.monotonic() + _PATIENCE_S
    while (left_s := end_s - time.monotonic()) > 0:
        if worker.poll() is not None:
            return
        feed.flush()
        if feed.is_open and not feed.is_waiting:
            feed.close()  # it has all, and takes the end of the pipe for the end of the run
        poll = select.poll()
        poll.register(signals.descriptor, select.POLLIN)
        if feed.is_open:
            poll.register(feed.descriptor, select.POLLOUT)
        poll.poll(left_s * 1000)
        if any(caught.number in FORWARDED for caught in signals.take()):
            return
