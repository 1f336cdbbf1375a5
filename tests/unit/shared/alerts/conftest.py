"""Fixtures of the tests of alerts."""

import pytest

from tests.unit.shared.alerts.environment import Plant
from tests.unit.shared.alerts.fakes import build_catalog, build_entry, build_rule


@pytest.fixture
def alert_environment() -> Plant:
    """Return a plant with one threshold rule."""
    return Plant(build_catalog(build_entry(build_rule())))
