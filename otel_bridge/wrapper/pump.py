"""The pump: one thread that moves bytes both ways and hands copies of the frames on.

It is the process that the MCP client started, and nothing is done in it that takes time: a byte is written before
anything else happens to it, and all that is done with the copies happens in another process.
"""

from __future__ import annotations

import select
import time

from otel_bridge.entries.frame import Direction
from otel_bridge.wrapper.child import FORWARDED, Child
from otel_bridge.wrapper.feed import Feed
from otel_bridge.wrapper.frames import FrameCutter
from otel_bridge.wrapper.lane import Lane
from otel_bridge.wrapper.records import ServerEnd
from otel_bridge.wrapper.signals import Signals
from otel_bridge.wrapper.stderr import Stderr

LAST_BYTES_S = 1.0
"""How long after the server's end its output is still read where others hold it open (what it started)."""
TOO_FAST = "frames come faster than they can be exported: all of them pass on, but some will be missing in the traces"
WORKER_GONE = "the exporting process has failed: the server goes on, but no more of this run is exported"

STUCK_S = 5.0
"""How long after the server's end the client is waited for to take what is left."""


class Pump:
    """Runs until the server has ended and the client has all of its output.

    `client_in` and `client_out` are our ends of the client's pipes. `feed` is closed where there is no worker; one that
    ends meanwhile is said once, and nothing else comes of it.
    """

    def __init__(
        self, child: Child, feed: Feed, signals: Signals, stderr: Stderr, client_in: int = 0, client_out: int = 1
    ) -> None:
        self._child = child
        self._feed = feed
        self._signals = signals
        self._stderr = stderr
        self._to_server = Lane(Direction.TO_SERVER, client_in, child.stdin, is_shared=False)
        self._to_client = Lane(Direction.TO_CLIENT, child.stdout, client_out, is_shared=True)
        self._lanes = (self._to_server, self._to_client)
        self._cutters = {lane.direction: FrameCutter(lane.direction) for lane in self._lanes}
        self._poll = select.poll()
        self._polled: dict[int, int] = {}
        self._exit_code: int | None = None
        self._ended_s = self._moved_s = 0.0
        self._was_fed = feed.is_open

    def run(self) -> int:
        """Pump to the end; returns the server's exit code, negative for a signal."""
        self._look_at_child()
        while self._exit_code is None or not self._is_through():
            self._wait()
            self._look_at_child()
        for lane in self._lanes:
            lane.abandon()
        self._feed.tell(ServerEnd(self._exit_code, time.time_ns()))
        self._say()
        return self._exit_code

    def _is_through(self) -> bool:
        """Whether a server that has ended left nothing more to pass on, or nobody takes it."""
        if self._to_client.is_over:
            return True
        now_s = time.monotonic()
        if self._to_client.is_pending:
            return now_s - max(self._ended_s, self._moved_s) > STUCK_S
        return now_s - self._ended_s > LAST_BYTES_S

    def _wait(self) -> None:
        ready = self._ready()
        moved = []
        for lane in self._lanes:
            if ready.get(lane.target, 0) and lane.is_pending:
                lane.write()
                self._moved_s = time.monotonic()
            if ready.get(lane.source, 0) and not lane.is_pending:
                data = lane.read()
                if data:
                    # Before it is written: nobody at the other end can have seen it earlier.
                    moved.append((lane.direction, data, time.time_ns()))
                    lane.write()
                    self._moved_s = time.monotonic()
        for direction, data, time_ns in moved:
            for frame in self._cutters[direction].feed(data, time_ns):
                self._feed.frame(frame)
        if ready.get(self._feed.descriptor, 0) & select.POLLERR:
            self._feed.close()
        self._feed.flush()
        if ready.get(self._signals.descriptor, 0):
            for caught in self._signals.take():
                if caught.number in FORWARDED and not (caught.is_for_group and self._child.is_in_our_group):
                    self._child.send(caught.number)
        self._say()

    def _ready(self) -> dict[int, int]:
        wanted = {self._signals.descriptor: select.POLLIN}
        for lane in self._lanes:
            # An end that is not waited for is not asked for at all: a hang-up would be reported again and again.
            if lane.is_pending:
                wanted[lane.target] = select.POLLOUT
            elif lane.source >= 0:
                wanted[lane.source] = select.POLLIN
        if self._feed.is_open:
            wanted[self._feed.descriptor] = select.POLLOUT if self._feed.is_waiting else 0
        for descriptor in self._polled.keys() - wanted.keys():
            self._poll.unregister(descriptor)
        for descriptor, events in wanted.items():
            if self._polled.get(descriptor) != events:
                self._poll.register(descriptor, events)
        self._polled = wanted
        return dict(self._poll.poll(None if self._exit_code is None else 100))

    def _look_at_child(self) -> None:
        if self._exit_code is None:
            self._exit_code = self._child.process.poll()
            if self._exit_code is not None:
                self._ended_s = time.monotonic()
                self._to_server.abandon()

    def _say(self) -> None:
        if self._feed.dropped_frames:
            self._stderr.say(TOO_FAST)
        if self._was_fed and not self._feed.is_open:
            self._stderr.say(WORKER_GONE)
        self._stderr.flush()
