"""The handler of the standard library's logging."""

from __future__ import annotations

import inspect
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from otel_bridge import Bridge, BridgeHandler, SettingError
from otel_bridge.inprocess.bridge import BridgeOptions
from otel_bridge.testing import CapturingExporter, Receiver, session_entries
from tests.inprocess.programs import by_extra, json_formatter, logger_with

EXPORTER = CapturingExporter()
"""What the configurations below name."""


def make_exporter(service: str = "") -> CapturingExporter:
    """A factory that the configurations below name."""
    EXPORTERS.append((service, CapturingExporter()))
    return EXPORTERS[-1][1]


EXPORTERS: list[tuple[str, CapturingExporter]] = []


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as a test may configure it; afterwards it is as before."""
    logger = logging.getLogger()
    handlers, level, disabled = logger.handlers[:], logger.level, logging.root.manager.disable
    yield logger
    for handler in logger.handlers:
        if handler not in handlers:
            handler.close()
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logging.disable(disabled)


def configuration(**handler: Any) -> dict[str, Any]:
    """A `dictConfig` with one handler, at the logger `configured`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "tests.inprocess.programs.json_formatter"}},
        "handlers": {"bridge": {"class": "otel_bridge.BridgeHandler", **handler}},
        "loggers": {"configured": {"level": "DEBUG", "handlers": ["bridge"], "propagate": False}},
    }


def log_session(name: str = "configured", **options: Any) -> BridgeHandler:
    """Logs a small session and gives the handler that took it, closed."""
    logger = logging.getLogger(name)
    for entry in session_entries(**options):
        by_extra(logger, entry)
    (handler,) = logger.handlers
    assert isinstance(handler, BridgeHandler)
    handler.close()
    return handler


@pytest.mark.parametrize(
    "exporter",
    ["ext://tests.inprocess.test_handler.EXPORTER", "ext://tests.inprocess.test_handler.make_exporter"],
)
def test_dict_config_takes_an_exporter_by_its_name(exporter: str, root: logging.Logger) -> None:
    """`ext://` names an exporter or what makes one; the other options are plain values."""
    logging.config.dictConfig(configuration(exporter=exporter, capture="full", level="INFO"))
    handler = log_session()

    assert handler.bridge.statistics().delivered == 8
    assert handler.level == logging.INFO


def test_dict_config_takes_a_factory_with_arguments(root: logging.Logger) -> None:
    """Under `()`, as elsewhere in such a configuration; `ext://` works in its arguments too."""
    factory = {"()": "tests.inprocess.test_handler.make_exporter", "service": "ext://tests.inprocess.test_handler.NAME"}
    logging.config.dictConfig(configuration(exporter=factory))
    log_session()

    name, exporter = EXPORTERS[-1]
    assert (name, len(exporter.spans)) == (NAME, 8)


NAME = "named by the configuration"


def test_dict_config_takes_settings_of_otlp(root: logging.Logger) -> None:
    """Without an exporter: endpoint, headers and the rest as for `Bridge`."""
    with Receiver() as receiver:
        options = {"endpoint": receiver.endpoint, "headers": {"X-Tenant": "a"}, "service_name": "mine"}
        logging.config.dictConfig(configuration(**options, max_queued_entries=100, idle_timeout_s=60))
        log_session()

    assert len(receiver.spans) == 8
    assert receiver.requests[0].headers["x-tenant"] == "a"


def test_configuring_anew_delivers_what_the_old_handler_has(root: logging.Logger) -> None:
    """`dictConfig` closes the handlers before under logging's own lock, which the HTTP library may be asking for."""
    root.setLevel(logging.DEBUG)
    with Receiver() as receiver:
        logging.config.dictConfig(configuration(endpoint=receiver.endpoint))
        logger = logging.getLogger("configured")
        for entry in session_entries():
            by_extra(logger, entry)
        logging.config.dictConfig(configuration(endpoint=receiver.endpoint))

        assert len(receiver.spans) == 8
        logger.handlers[0].close()


def test_flushing_lets_the_bridges_threads_log(root: logging.Logger) -> None:
    """`logging.shutdown` flushes with the handler's lock, which the HTTP library's messages would ask for."""
    root.setLevel(logging.DEBUG)
    with Receiver() as receiver:
        root.addHandler(handler := BridgeHandler(endpoint=receiver.endpoint))
        for entry in session_entries():
            by_extra(root, entry)
        handler.acquire()
        handler.flush()
        handler.release()

        assert len(receiver.spans) == 8


def test_an_option_that_cannot_be_used_names_itself(root: logging.Logger) -> None:
    """The configuration fails with the bridge's own words as the cause."""
    with pytest.raises(ValueError, match="bridge") as error:
        logging.config.dictConfig(configuration(capture="everything"))

    assert isinstance(error.value.__cause__, SettingError)


def test_records_that_are_no_entries_are_left_alone() -> None:
    """Prose, numbers, other mappings and other JSON: nothing is counted."""
    with logger_with(handler := BridgeHandler(CapturingExporter())) as logger:
        for message in (
            "GET /",
            7,
            None,
            {"message": "GET /"},
            {"event": 1},
            '{"a": 1}',
            "session: prose",
            "{",
            "%d%%",
        ):
            logger.info(message)
        logger.info("%s said %s", "tool:", 7)

    assert handler.bridge.statistics()[:4] == (0, 0, 0, 0)


def test_a_logging_mistake_of_the_host_is_not_raised(capsys: pytest.CaptureFixture[str]) -> None:
    """A record whose arguments do not fit is counted; nothing of it is shown."""
    with logger_with(handler := BridgeHandler(CapturingExporter())) as logger:
        logger.info("tool:call %d", "secret")

    assert handler.bridge.statistics().malformed == 1
    assert "secret" not in capsys.readouterr().err


def test_a_formatter_that_fails_is_not_raised() -> None:
    """It is the host's code; what it raises is counted."""

    class Failing(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            raise OSError

    handler = BridgeHandler(CapturingExporter())
    handler.setFormatter(Failing())
    with logger_with(handler) as logger:
        logger.info("tool:call", extra={"tool": "x"})

    assert handler.bridge.statistics().malformed == 1


class Prose(logging.Formatter):
    """Writes plain text, and is no plain formatter."""


@pytest.mark.parametrize("formatter", [logging.Formatter("%(levelname)s %(message)s"), Prose(), json_formatter()])
def test_a_formatter_that_writes_no_entry_changes_nothing(formatter: logging.Formatter) -> None:
    """Plain text, as `basicConfig` sets it up, leaves the record itself to be read."""
    exporter = CapturingExporter()
    handler = BridgeHandler(exporter)
    handler.setFormatter(formatter)
    with logger_with(handler) as logger:
        for entry in session_entries():
            by_extra(logger, entry)

    assert len(exporter.spans) == 8


def test_an_exporter_that_logs_at_debug_feeds_no_loop(root: logging.Logger) -> None:
    """The HTTP library's debug messages on the root logger, and entries that an exporter itself logs, go nowhere."""

    class Chatty(CapturingExporter):
        def export(self, spans: Any) -> SpanExportResult:
            for entry in session_entries():
                by_extra(logging.getLogger("exporter"), entry)
            return super().export(spans)

    root.setLevel(logging.DEBUG)
    with Receiver() as receiver:
        handlers = [BridgeHandler(endpoint=receiver.endpoint), BridgeHandler(SimpleSpanProcessor(Chatty()))]
        root.addHandler(handlers[0])
        for entry in session_entries():
            by_extra(root, entry)
        handlers[0].close()
        root.removeHandler(handlers[0])
        root.addHandler(handlers[1])
        for entry in session_entries():
            by_extra(root, entry)
        handlers[1].close()

    assert [handler.bridge.statistics().entries for handler in handlers] == [len(session_entries())] * 2


def test_a_bridge_that_is_given_stays_its_owners() -> None:
    """Closing the handler does not close the bridge; an exporter beside it is refused."""
    with Bridge(CapturingExporter()) as bridge:
        with logger_with(BridgeHandler(bridge=bridge)) as logger:
            by_extra(logger, session_entries()[0])
        bridge.feed(session_entries()[1])

        assert bridge.statistics().entries == 2
        assert bridge.statistics().dropped == 0
        with pytest.raises(ValueError, match="no effect beside a bridge"):
            BridgeHandler(bridge=bridge, capture="full")


def test_filters_are_heeded() -> None:
    """A record that a filter of the handler stops is not taken."""
    handler = BridgeHandler(CapturingExporter())
    handler.addFilter(lambda record: getattr(record, "tool", "") != "set_breakpoint")
    with logger_with(handler) as logger:
        for entry in session_entries():
            by_extra(logger, entry)

    assert handler.bridge.statistics().entries == len(session_entries()) - 2


def test_other_handlers_see_the_record_as_it_was() -> None:
    """Taking an entry changes nothing in the record, nor in what was logged with it."""
    request = {"path": "/app", "env": {"TOKEN": "abc"}}
    with logger_with(handler := BridgeHandler(CapturingExporter())) as logger:
        record = logger.makeRecord("n", logging.INFO, "f", 1, "tool:call", (), None, extra={"request": request})
        before = dict(record.__dict__)
        handler.handle(record)

    assert before == record.__dict__
    assert request == {"path": "/app", "env": {"TOKEN": "abc"}}


def test_the_handlers_options_are_those_of_the_bridge() -> None:
    """Whatever `Bridge` can be told, a handler can be told."""
    assert set(BridgeOptions.__annotations__) == set(inspect.signature(Bridge).parameters) - {"exporter"}
