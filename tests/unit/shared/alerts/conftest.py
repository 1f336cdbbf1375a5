"""Fixtures of the tests of alerts."""

import pytest

from tests.unit.shared.alerts.environment import AlertWorkspace
from tests.unit.shared.alerts.fakes import build_catalog, build_entry, build_rule


@pytest.fixture
def alert_workspace() -> AlertWorkspace:
    """Return a workspace with one threshold rule, in-memory stores and a clock."""
    return AlertWorkspace(build_catalog(build_entry(build_rule())))
