"""`otel-bridge resend`: sends refused spans again, and lets go of those that are taken now."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from otel_bridge.cli.options import export_options, export_settings
from otel_bridge.cli.state_dir import state_dir_option

if TYPE_CHECKING:
    from otel_bridge.export.dead_letters import StoredLetter
    from otel_bridge.export.transport import Transport
    from otel_bridge.export.verdict import Verdict

PATIENCE_S = 30.0
"""How long it goes on trying when nothing gets through; a person waits for it."""

STOPPED = 130
"""The exit status of what Ctrl-C stopped, as shells have it."""


@click.command("resend")
@state_dir_option
@export_options
def command(state_dir: Path | None, **options: Any) -> None:
    """Send refused spans again.

    What a backend refused is kept beside the state. It is sent once more, to the same backend or to another; what is
    taken now is removed, and what is refused again stays, with the reason. A bridge may run meanwhile. With --exporter
    console the spans are only shown. Exit status: 0 all delivered, 1 not, 130 stopped by Ctrl-C.

    \b
    Examples:
      otel-bridge resend
      otel-bridge resend --endpoint http://collector:4318
      otel-bridge resend --exporter console
    """
    from otel_bridge.export.dead_letters import DeadLetters
    from otel_bridge.export.transport import open_transport
    from otel_bridge.settings import Exporter
    from otel_bridge.state.place import DEAD_LETTERS, refuse_file, state_folder
    from otel_bridge.view.escape import printable

    settings = export_settings(options)
    for notice in settings.notices:
        _say(notice)
    folder = state_folder(state_dir)
    refuse_file(folder)
    dead_letters = DeadLetters(folder / DEAD_LETTERS)
    contents = dead_letters.read()
    if contents.broken_lines:
        _say(f"{dead_letters.path}: {contents.broken_lines} of its lines hold no spans (cut off by a kill); they stay")
    if not contents.letters:
        if contents.broken_lines:
            click.echo("no refused span can be read: nothing was sent again")
            sys.exit(1)
        if folder.exists():
            click.echo(f"no refused span is kept in {printable(str(folder))}: there is nothing to send again")
        else:
            click.echo(
                f"no bridge has kept anything in {printable(str(folder))}: there is nothing to send again; "
                "if another folder is meant, name it with --state-dir"
            )
        return
    transport = open_transport(settings)
    if transport.proxy:
        _say(f"exports go through the proxy {transport.proxy}")
    resending = Resending(transport)
    is_stopped = False
    try:
        resending.run(contents.letters)
    except KeyboardInterrupt:
        is_stopped = True
    finally:  # also when it is stopped: what was taken is not sent a third time
        transport.close()
        if resending.delivered and settings.exporter is not Exporter.CONSOLE:
            dead_letters.remove(resending.delivered)
    if settings.exporter is Exporter.CONSOLE:
        _say(f"{'stopped: ' if is_stopped else ''}{_spans(resending.delivered_spans)} shown, and kept")
        sys.exit(STOPPED if is_stopped else 0)
    for reason, count in resending.refused.items():
        _say(f"{transport.endpoint} refused {_spans(count)} again: {reason}")
    if resending.trouble:
        _say(f"{transport.endpoint}: {resending.trouble}")
    left_spans = sum(letter.refused_count for letter in contents.letters) - resending.delivered_spans
    kept = f"; {_spans(left_spans)} kept for the next time" if left_spans else ""
    click.echo(f"{'stopped: ' if is_stopped else ''}{_spans(resending.delivered_spans)} delivered{kept}")
    if is_stopped:
        sys.exit(STOPPED)
    if left_spans:
        sys.exit(1)


@dataclass(slots=True)
class Resending:
    """Sends letters, one after the other, until all are sent or nothing gets through any more.

    Afterwards `delivered` are the keys of the letters that were taken whole, `delivered_spans` the refused spans in
    them, `refused` counts spans by the reason for which they were refused again, and `trouble` says why it ended early.
    """

    transport: Transport
    wait: Callable[[float], None] = time.sleep
    clock_s: Callable[[], float] = time.monotonic
    delivered: list[str] = field(default_factory=list)
    delivered_spans: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    trouble: str = ""

    def run(self, letters: Sequence[StoredLetter]) -> None:
        """Send them all, oldest first."""
        for letter in letters:
            is_taken = self._send(letter)
            if self.trouble:
                return
            if is_taken:
                self.delivered.append(letter.key)
                self.delivered_spans += letter.refused_count

    def _send(self, letter: StoredLetter) -> bool:
        """Send one letter; a part that is too large or refused is halved, so that what is good in it gets through.

        A letter of which anything is refused again stays whole: a span that comes twice is shown once.
        """
        from otel_bridge.export.verdict import Delivered, Misconfigured, PartlyRefused, Refused, TooLarge, TryLater

        is_taken = True
        parts = [letter.body]
        while parts:
            part = parts.pop()
            match self._verdict(part):
                case Delivered():
                    continue
                case PartlyRefused(count, message):
                    self.refused[message or "no reason given"] += min(count, span_count(part))
                case TooLarge(reason, code) | Refused(reason, code):
                    if smaller := halves(part):
                        parts += smaller
                        continue
                    self.refused[f"{code}: {reason}"] += 1
                case TryLater(reason):
                    self.trouble = f"{reason}; try again later"
                    return False
                case Misconfigured(message):
                    self.trouble = message
                    return False
            is_taken = False
        return is_taken

    def _verdict(self, body: bytes) -> Verdict:
        """The backend's word, asked for again while it says later, as long as the patience lasts."""
        from otel_bridge.export.retry import Backoff, RetryPolicy
        from otel_bridge.export.verdict import TryLater, judge

        backoff = Backoff(RetryPolicy(), random.random)
        until_s = self.clock_s() + PATIENCE_S
        while True:
            verdict = judge(self.transport.send(body))
            if not isinstance(verdict, TryLater):
                return verdict
            wait_s = backoff.next_s(verdict)
            if self.clock_s() + wait_s > until_s:
                return verdict
            self.wait(wait_s)


def span_count(body: bytes) -> int:
    """How many spans an `ExportTraceServiceRequest` holds: no backend can refuse more of it."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    whole = ExportTraceServiceRequest.FromString(body)
    return sum(len(scope.spans) for resource in whole.resource_spans for scope in resource.scope_spans)


def halves(body: bytes) -> list[bytes]:
    """An `ExportTraceServiceRequest` as two, each with half of the spans; empty when it has only one."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    count = span_count(body)
    if count < 2:
        return []
    parts = []
    for start, end in ((count // 2, count), (0, count // 2)):
        part = ExportTraceServiceRequest.FromString(body)
        before = 0
        for resource in part.resource_spans:
            for scope in resource.scope_spans:
                here = len(scope.spans)
                kept = scope.spans[max(0, start - before) : max(0, end - before)]
                del scope.spans[:]
                scope.spans.extend(kept)
                before += here
        parts.append(part.SerializeToString())
    return parts


def _spans(count: int) -> str:
    return "1 span" if count == 1 else f"{count:,} spans"


def _say(text: str) -> None:
    from otel_bridge.view.escape import printable

    click.echo(f"otel-bridge: {printable(text)}", err=True)
