"""What Python's loggers add to an entry of their own."""

from __future__ import annotations

import pytest

from otel_bridge.entries.decoding import interpret
from otel_bridge.entries.entry import Entry

TIME_MS = 1_796_071_984_000


def fields_of(**fields: object) -> dict[str, object]:
    """The fields that are kept of an entry with these."""
    entry = interpret({"message": "debug:memory", "timestamp": TIME_MS, **fields})
    assert isinstance(entry, Entry)
    return dict(entry.fields)


def test_names_of_a_log_record_are_no_part_of_the_entry() -> None:
    """What a formatter writes of the record itself goes, an ambiguous name with the unmistakable ones."""
    written = {"levelname": "INFO", "name": "my.logger", "lineno": 7, "process": 1, "taskName": None}

    assert fields_of(tool="step_over", **written) == {"tool": "step_over"}


@pytest.mark.parametrize("name", ["name", "module", "process", "thread", "filename", "created", "args", "msg"])
def test_an_ambiguous_name_alone_stays(name: str) -> None:
    """An entry that no Python logger wrote keeps a field that a log record happens to have too."""
    assert {name: 1} == fields_of(**{name: 1})


def test_structlogs_names_go_as_well() -> None:
    """The logger's name and the place in the code, as structlog writes them."""
    assert fields_of(tool="x", logger="my.logger", func_name="main", lineno=3, module="m") == {"tool": "x"}
