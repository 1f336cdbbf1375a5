"""Tests of the outbox, which stores one delivery of each event for each endpoint."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from shared.background.ports import CLOCK_TOLERANCE
from shared.webhooks.events import WebhookEvent
from shared.webhooks.models import Delivery
from shared.webhooks.outbox import MAX_ADDED
from tests.unit.shared.webhooks.environment import DOWNLOAD, TEST, open_webhooks


async def test_many_events_are_stored_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storing thousands of events does not block the event loop or other writers."""
    async with open_webhooks(tmp_path / "webhooks.sqlite") as webhook_services:
        wanting = [await webhook_services.create_endpoint(DOWNLOAD) for _ in range(3)]
        other = await webhook_services.create_endpoint(TEST)
        sizes: list[int] = []
        add = webhook_services.store.add_deliveries

        async def count_deliveries(deliveries: Sequence[Delivery]) -> None:
            sizes.append(len(deliveries))
            await add(deliveries)

        monkeypatch.setattr(webhook_services.store, "add_deliveries", count_deliveries)
        number = 2 * MAX_ADDED
        events = [
            WebhookEvent(f"k{each}", DOWNLOAD, webhook_services.time.now, {"downloadId": each})
            for each in range(number)
        ]
        await webhook_services.outbox.publish(events)
        assert (max(sizes) <= MAX_ADDED, sum(sizes)) == (True, 3 * number)
        assert [len(await webhook_services.list_all(each)) for each in (*wanting, other)] == [number, number, number, 0]
        await webhook_services.outbox.publish(events)
        assert [len(await webhook_services.list_all(each)) for each in wanting] == [number, number, number]


async def test_nothing_is_stored_without_a_subscriber(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no enabled endpoint subscribes to an event, nothing is stored."""
    async with open_webhooks(tmp_path / "webhooks.sqlite") as webhook_services:
        await webhook_services.create_endpoint(TEST)
        await webhook_services.create_endpoint(DOWNLOAD, enabled=False)

        async def fail_to_store(deliveries: Sequence[Delivery]) -> None:
            raise AssertionError(deliveries)

        monkeypatch.setattr(webhook_services.store, "add_deliveries", fail_to_store)
        await webhook_services.publish()


async def test_a_webhook_that_was_created_before_a_clock_setback_receives_events(tmp_path: Path) -> None:
    """If the clock is set back after a webhook was created, the webhook receives events of the last five minutes."""
    async with open_webhooks(tmp_path / "webhooks.sqlite") as webhook_services:
        endpoint = await webhook_services.create_endpoint(DOWNLOAD)
        webhook_services.time.advance(-3000)
        now = webhook_services.time.now
        await webhook_services.publish("earlier", at=now - CLOCK_TOLERANCE - timedelta(seconds=1))
        assert await webhook_services.list_all(endpoint) == []
        await webhook_services.publish("recent", at=now)
        assert len(await webhook_services.list_all(endpoint)) == 1
