"""`otel-bridge demo`: a recorded real session through the whole pipeline, drawn as a waterfall."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import click

from otel_bridge.cli.options import export_options, export_settings, mapping_options, mapping_settings

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
    import os

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
            complete = receiver.wait_for(
                lambda spans: any(span.name == "debug_session lifetime" for span in spans), DEADLINE_S
            )
            stop.set()
            tail.wake.set()
            runner.join()
        spans = receiver.spans
    if not complete:
        announcer.once(f"the session did not arrive within {DEADLINE_S:.0f} s; {len(spans)} spans did")
        sys.exit(1)
    session = [span for span in spans if span.trace_id == spans[0].trace_id]
    print_trace(session, sys.stdout)
    if to_backend:
        from otel_bridge.pipeline.replay import send_spans

        send_spans(spans, export, announcer)
        trace_id = f"{spans[0].trace_id:032x}"
        click.echo(f"\nSent to the backend as well: trace {trace_id}")
        click.echo(f"In Jaeger's page: http://localhost:16686/trace/{trace_id} (its usual address)")
