"""Settings of all tests, and a line at the end of a run about the tests that were left out."""

from collections import Counter

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing about the rule.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which continuous integration runs."""
    parser.addoption("--require-all", action="store_true", help="fail if a test is left out because a tool is missing")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a run that left tests out into a failure, if that was requested."""
    if session.config.option.require_all and session.exitstatus == pytest.ExitCode.OK and _left_out(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line that names what was left out, and how to get it."""
    if reasons := _left_out(config):
        parts = (f"{count} ({reason})" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"tests left out: {'; '.join(parts)}", yellow=True)


def _left_out(config: pytest.Config) -> Counter[str]:
    """Return how many tests were skipped for each reason; the workers of a parallel run know none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if isinstance(reporter, pytest.TerminalReporter) else []
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
