"""Options of all tests, and a summary line about skipped tests."""

import gc
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import settings

from tests.random_examples import SOAK_EXAMPLES, TEST_EXAMPLES

# The duration of an example depends on the load of the machine, so there is no deadline. A run of all tests takes few
# examples of each rule, because every run takes others; make soak takes many.
settings.register_profile("tests", deadline=None, max_examples=TEST_EXAMPLES)
settings.register_profile("soak", deadline=None, max_examples=SOAK_EXAMPLES)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which continuous integration rejects skipped tests."""
    parser.addoption("--require-all", action="store_true", help="fail if a test is left out because a tool is missing")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pause garbage collection while tests are collected, because nearly all new objects stay in use."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """If the option is set, fail a test run that has skipped tests."""
    if (
        session.config.option.require_all
        and session.exitstatus == pytest.ExitCode.OK
        and _count_skipped(session.config)
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line with the reasons of skipped tests and how to install the missing tools."""
    if reasons := _count_skipped(config):
        parts = (f"{count} ({reason})" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"tests left out: {'; '.join(parts)}", yellow=True)


def _count_skipped(config: pytest.Config) -> Counter[str]:
    """Return the number of skipped tests by reason.

    Workers of a parallel run return nothing, because the controller counts.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if isinstance(reporter, pytest.TerminalReporter) else []
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
