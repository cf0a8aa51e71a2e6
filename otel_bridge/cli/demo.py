"""`otel-bridge demo`: a recorded real session through the whole pipeline, drawn as a waterfall."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from otel_bridge.cli.options import export_options, export_settings, mapping_options, mapping_settings
from otel_bridge.sessions.attributes import LIFETIME_NAME

if TYPE_CHECKING:
    from otel_bridge.pipeline.announcements import Announcer
    from otel_bridge.sessions.span import Span
    from otel_bridge.settings import ExportSettings
    from otel_bridge.testing import Receiver

DEADLINE_S = 20.0


@click.command("demo")
@export_options
@mapping_options
def command(**options: Any) -> None:
    """Play a recorded real session through the whole pipeline and draw what arrived.

    The recording is written to a temporary log, followed as `tail` does, mapped, and sent over OTLP/HTTP to a small
    receiver inside this process. Nothing else is needed. With --endpoint (or OTEL_EXPORTER_OTLP_ENDPOINT) it is sent to
    that backend as well.

    \b
    Examples:
      otel-bridge demo
      otel-bridge demo --endpoint http://localhost:4318
    """
    from otel_bridge.demo import demo_log
    from otel_bridge.pipeline.announcements import Announcer
    from otel_bridge.pipeline.assembly import TailSettings, running_tail
    from otel_bridge.settings import resolve_export_settings
    from otel_bridge.testing import Receiver
    from otel_bridge.view.terminal import print_trace

    to_backend = options["endpoint"] or any(
        os.environ.get(name) for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    )
    export = export_settings(options)
    announcer = Announcer(lambda line: click.echo(line, err=True))
    with Receiver() as receiver, tempfile.TemporaryDirectory(prefix="otel-bridge-demo-") as folder:
        log = Path(folder, "debug-mcp-server-demo.log")
        log.write_bytes(demo_log())
        stop = threading.Event()
        inside = resolve_export_settings({}, endpoint=receiver.endpoint)
        mapping = mapping_settings(options)
        settings = TailSettings((str(log),), "beginning", Path(folder, "state"), mapping, inside)
        with running_tail(settings, announcer, stop) as tail:
            runner = threading.Thread(target=tail.run, args=(stop,))
            runner.start()
            arrived = _wait(receiver)
            stop.set()
            tail.wake.set()
            runner.join()
        spans = receiver.spans
    if not arrived:
        announcer.once(f"the session did not arrive within {DEADLINE_S:.0f} s; {len(spans)} spans did")
        sys.exit(1)
    session = [span for span in spans if span.trace_id == spans[0].trace_id]
    print_trace(session, sys.stdout)
    if to_backend:
        _send(spans, export, announcer)


def _wait(receiver: Receiver) -> bool:
    def is_complete(so_far: Receiver) -> bool:
        return any(span.name == LIFETIME_NAME for span in so_far.spans)

    try:
        receiver.wait_for(is_complete, DEADLINE_S)
    except TimeoutError:
        return False
    return True


def _send(spans: Sequence[Span], export: ExportSettings, announcer: Announcer) -> None:
    """Sends what arrived to the backend as well, and prints where to look."""
    from otel_bridge.export.batches import Batch
    from otel_bridge.export.delivery import Delivery
    from otel_bridge.export.encode import RequestEncoder, SpanEncoder
    from otel_bridge.export.resource import Scope
    from otel_bridge.export.transport import open_transport

    transport = open_transport(export)
    delivery = Delivery(
        transport,
        RequestEncoder(export.resource, Scope()),
        None,
        lambda mark: None,
        on_bulletin=lambda bulletin: announcer.once(bulletin.text),
    )
    encoder = SpanEncoder()
    delivery.submit(Batch(tuple(encoder.encode(span) for span in spans), None))
    outcome = delivery.close(DEADLINE_S)
    if outcome.left_spans or outcome.refused_spans:
        announcer.once(f"{transport.endpoint} did not take the spans: {outcome.reason or 'refused'}")
        sys.exit(1)
    trace_id = f"{spans[0].trace_id:032x}"
    click.echo(f"\nSent to {transport.endpoint} as well: trace {trace_id}")
    host = urlsplit(f"//{transport.endpoint.partition('//')[2] or transport.endpoint}").hostname
    click.echo(f"In Jaeger, where its page has the usual port: http://{host}:16686/trace/{trace_id}")
