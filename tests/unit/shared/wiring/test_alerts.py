"""Tests of the selection of the store for alerts."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_alert_store(find_store_classes: Choice) -> None:
    """The setting STORES selects the store of alerts, of the same kind as the other stores."""
    assert find_store_classes(lambda services: services.alerts.store) == ("SqliteAlertStore", "CosmosAlertStore")
