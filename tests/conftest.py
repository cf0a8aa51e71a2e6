"""Which tests run: those whose real parts are there. In CI all that can be made must be, and no test may be skipped."""

from __future__ import annotations

import signal
from functools import cache

import pytest

from tests.real.parts.build import PARTS, Right, in_ci

_left_out = pytest.StashKey[list[str]]()

# A shell that runs the tests in the background has Ctrl-C ignored, in the processes that tests start and stop too.
signal.signal(signal.SIGINT, signal.default_int_handler)


def missing_parts(item: pytest.Item) -> list[str]:
    """The parts that a test asks for, by `pytest.mark.real(NAME...)`, and that leave it out because they are not there.

    UsageError names a part that is not in the table.
    """
    names = [name for mark in item.iter_markers("real") for name in mark.args]
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise pytest.UsageError(f"{item.nodeid} needs {', '.join(unknown)}, which tests/real/parts/build.py has not")
    return [name for name in names if (isinstance(PARTS[name], Right) or not in_ci()) and _is_missing(name)]


@cache
def _is_missing(name: str) -> bool:
    return PARTS[name].locate() is None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests whose parts are missing; in CI they stay, and fail for it, if the part could have been made."""
    missing = {item.nodeid: missing_parts(item) for item in items}
    left_out = [item for item in items if missing[item.nodeid]]
    if left_out:
        items[:] = [item for item in items if not missing[item.nodeid]]
        config.hook.pytest_deselected(items=left_out)
    config.stash[_left_out] = [f"{item.nodeid} (no {', '.join(missing[item.nodeid])})" for item in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Makes a skipped test a failure in CI, and hands a worker's list of left-out tests to the process that reports."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if in_ci() and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    worker_output = getattr(session.config, "workeroutput", None)
    if worker_output is not None:
        worker_output["left_out"] = session.config.stash.get(_left_out, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Takes the list of left-out tests from a worker of pytest-xdist; every worker has the same."""
    config: pytest.Config = getattr(node, "config")  # noqa: B009
    output: dict[str, list[str]] = getattr(node, "workeroutput", {})
    config.stash[_left_out] = output.get("left_out", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Names the tests that were left out."""
    left_out = config.stash.get(_left_out, [])
    if left_out:
        terminalreporter.section("left out, for parts that are missing")
    for test in left_out:
        terminalreporter.line(test)
