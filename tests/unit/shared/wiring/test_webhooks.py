"""Tests of the selection of the store for webhooks, waking the event sources, and announcements."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from shared.catalog.ports import CONTEXT, PendingEvent
from shared.runtime import SYSTEM_RUNTIME
from shared.signatures.attempts import LockOut
from shared.timestamps import format_rfc3339
from shared.webhooks.events import WebhookEvent
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


@pytest.mark.parametrize(("days", "number"), [(28, 2), (31, 0)])
async def test_an_announcement_is_not_repeated_after_its_delivery_has_expired(
    local_services: Services, monkeypatch: pytest.MonkeyPatch, days: int, number: int
) -> None:
    """Events that wait for their audit record are announced until their deliveries expire, and not again later."""
    published: list[str] = []

    async def record_types(events: Sequence[WebhookEvent]) -> None:
        published.extend(event.type.value for event in events)

    webhooks, at = local_services.webhooks, SYSTEM_RUNTIME.now() - timedelta(days=days)
    monkeypatch.setattr(webhooks.outbox, "publish", record_types)
    context = {"editedBy": "ann", "changedAt": format_rfc3339(at)}
    change = {"ActionType": "Updated", "EntityType": "WarmQuery", "EntityID": "q1", "AfterState": {"name": "First"}}
    await webhooks.announce_query_changes([PendingEvent("e1", "PlatformConfig", "ann", {**change, CONTEXT: context})])
    await webhooks.announce_lock_out("ann", LockOut("e2", at, 5, at))
    assert published == ["warm-query.pending-approval", "signature.suspicious"][:number]
