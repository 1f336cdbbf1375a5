"""Tests of the selection of the store for webhooks, and of waking the event sources."""

from pathlib import Path

from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_webhook_store(find_store_classes: Choice) -> None:
    """The setting STORES selects the store of endpoints and deliveries, of the same kind as the other stores."""
    assert find_store_classes(lambda services: services.webhooks.store) == ("SqliteWebhookStore", "CosmosWebhookStore")


def test_a_change_wakes_the_sources_of_webhook_events(local_services: Services) -> None:
    """A change wakes the sources of webhook events, so that its event is published before the next timer run."""
    calls: list[int] = []
    local_services.webhooks.set_event_source_starter(lambda: calls.append(1))
    local_services.webhooks.start_event_sources()
    assert calls == [1]


def test_no_key_is_created_before_its_use(local_services: Services, tmp_path: Path) -> None:
    """The key file for secrets is created at its first use, so that a workspace without webhooks has none."""
    assert local_services.webhooks.vault is local_services.webhooks.vault
    assert not (tmp_path / "webhook-key").exists()
