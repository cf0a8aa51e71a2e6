"""A handler of the standard library's logging, for programs that log in mcp-debugger's format."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Unpack

from otel_bridge.inprocess.bridge import Bridge, BridgeOptions

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter

    Target = SpanExporter | SpanProcessor


class BridgeHandler(logging.Handler):
    """Hands the entries among a program's log records to a bridge; all other records are left alone.

    An entry is a record whose message is one of the format's kinds, with its fields by `extra=`, or whose message is a
    mapping or JSON text (see `otel_bridge.inprocess.records`). `Bridge` describes the `exporter` and the `options`;
    here `exporter` can be a factory as well, or, for `logging.config.dictConfig`, a mapping with the factory (or its
    dotted name) under `()` and the factory's arguments. A `bridge` that is given stays its owner's: it is not closed.

        logging.getLogger("debug-mcp").addHandler(BridgeHandler())

    `emit` never waits and never raises; what goes wrong is counted and said by the logger `otel_bridge`, without the
    record, as `Handler.handleError` would show it with its secrets. Only a formatter that writes JSON has a meaning
    here: its text is taken as the entry, so that a file with the same formatter holds the same.
    """

    def __init__(
        self,
        exporter: Target | Callable[[], Target] | Mapping[str, object] | None = None,
        *,
        bridge: Bridge | None = None,
        level: int | str = logging.NOTSET,
        **options: Unpack[BridgeOptions],
    ) -> None:
        """Raises what `Bridge` raises, and ValueError for an exporter or options beside a `bridge`."""
        if bridge is not None and (exporter is not None or options):
            raise ValueError("an exporter and options have no effect beside a bridge; give them to the bridge")
        self._is_owner = bridge is None
        self.bridge = Bridge(_built(exporter), **options) if bridge is None else bridge
        super().__init__(level)

    def handle(self, record: logging.LogRecord) -> bool | logging.LogRecord:  # type: ignore[override]
        """Filter and emit, without the handler's lock: the bridge needs none.

        `logging.shutdown` holds it while it waits in `flush` for the bridge's threads, which may log themselves.
        """
        passed: bool | logging.LogRecord = self.filter(record)
        if passed:
            self.emit(passed if isinstance(passed, logging.LogRecord) else record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Take the entry in the record, if there is one."""
        self.bridge.feed_record(record, self.formatter)

    def flush(self) -> None:
        """Wait, for some seconds at most, until what is final has been delivered."""
        _settle_levels()
        self.bridge.flush()

    def close(self) -> None:
        """Close the bridge, unless it is somebody else's: sessions that are open end, what is left is delivered."""
        if self._is_owner:
            _settle_levels()
            self.bridge.close()
        super().close()


def _settle_levels() -> None:
    """Have every logger know whether it logs at each level, so that none has to ask while this thread waits.

    They ask under the lock of the logging module, which `dictConfig` holds while it flushes and closes the handlers of
    the configuration before: an HTTP library that says "Starting new HTTP connection" would wait for the handler that
    waits for it.
    """
    loggers = [logging.root, *logging.Logger.manager.loggerDict.values()]
    for logger in loggers:
        if isinstance(logger, logging.Logger):
            for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
                logger.isEnabledFor(level)


def _built(exporter: Target | Callable[[], Target] | Mapping[str, object] | None) -> Target | None:
    if isinstance(exporter, Mapping):
        factory = exporter["()"]
        if isinstance(factory, str):
            factory = pkgutil.resolve_name(factory)
        assert callable(factory)
        # By key: the mapping of a logging configuration turns `ext://` into objects only when it is asked for one.
        built: Target = factory(**{name: exporter[name] for name in exporter if name != "()"})
        return built
    if callable(exporter):
        return exporter()
    return exporter
