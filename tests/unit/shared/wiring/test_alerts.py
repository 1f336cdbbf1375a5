"""Tests of the choice of the store for alerts."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_settings_choose_the_store(choose: Choice) -> None:
    """Alerts are stored where the other data of the workspace is."""
    assert choose(lambda services: services.alerts.store) == ("SqliteAlertStore", "CosmosAlertStore")
