"""Webhook endpoints and deliveries in Cosmos DB.

The deliveries of an endpoint are one logical partition. Each item is replaced under If-Match, so two workers never
claim the same delivery.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import WEBHOOKS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, NoChange
from shared.timestamps import format_rfc3339
from shared.webhooks.models import (
    Delivery,
    DeliveryStatus,
    parse_stored_delivery_or_log_error,
    reschedule_stored_delivery,
)
from shared.webhooks.ports import DeliveryPlace

_DOCUMENTS: Final = "documents"
"""Partition key of the endpoints' documents; it differs from all ids of endpoints, because they are longer."""
_WRITES_AT_ONCE: Final = 16


class CosmosWebhookStore:
    """Implementation of WebhookStore: stores webhook endpoints and deliveries in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = CosmosItemStore(account, WEBHOOKS, "WEBHOOKS_UNAVAILABLE", "the store of webhooks")

    async def read_state_document(self, document_name: str) -> str | None:
        item = await self._items.read(document_name, _DOCUMENTS)
        return None if item is None else str(item["content"])

    async def change_state_document(self, document_name: str, change: Callable[[str | None], str | None]) -> str | None:
        def change_document_item(before: Item | None) -> Item | NoChange:
            after = change(None if before is None else str(before["content"]))
            return None if after is None else {"id": document_name, "endpoint": _DOCUMENTS, "content": after}

        item = await self._items.change(document_name, _DOCUMENTS, change_document_item)
        return None if item is None else str(item["content"])

    async def add_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        places = asyncio.Semaphore(_WRITES_AT_ONCE)

        async def add_delivery(delivery: Delivery) -> None:
            def build_item_if_missing(before: Item | None) -> Item | NoChange:
                return None if before is not None else _delivery_to_item(delivery)

            async with places:
                await self._items.change(delivery.id, delivery.endpoint, build_item_if_missing)

        await asyncio.gather(*map(add_delivery, deliveries))

    async def find_due_endpoint_id(self, at: datetime, excluded_ids: Collection[str]) -> str | None:
        names = {f"e{number}": endpoint for number, endpoint in enumerate(excluded_ids)}
        condition = f" AND NOT c.endpoint IN ({', '.join(f'@{name}' for name in names)})" if names else ""
        text = f"SELECT TOP 1 c.endpoint FROM c WHERE c.dueAt <= @at{condition}"  # noqa: S608  parameter names
        found = await self._items.query_items(text, at=format_rfc3339(at), **names)
        return str(found[0]["endpoint"]) if found else None

    async def claim_due_deliveries(
        self, endpoint_id: str, at: datetime, leased_until: datetime, lease_id: str, limit: int
    ) -> Sequence[Delivery]:
        text = f"SELECT TOP {limit} * FROM c WHERE c.endpoint = @endpoint AND c.dueAt <= @at ORDER BY c.dueAt"  # noqa: S608  a number
        items = await self._items.query_items(text, endpoint_id, endpoint=endpoint_id, at=format_rfc3339(at))

        async def try_claim_delivery(item: Item) -> Delivery | None:
            found = _delivery_from_item_if_valid(item)
            if found is None:
                await self._items.put_if_unchanged(item, item | {"dueAt": format_rfc3339(leased_until)})
                return None
            claimed = found.model_copy(update={"lease": lease_id, "scheduled_at": at})
            after = _delivery_to_item(claimed) | {"dueAt": format_rfc3339(leased_until)}
            return None if await self._items.put_if_unchanged(item, after) is None else claimed

        claims = await asyncio.gather(*map(try_claim_delivery, items))
        return [each for each in claims if each is not None]

    async def reschedule_and_count_after_clock_setback(
        self, waiting_due_at: datetime, claimed_due_at: datetime, scheduled_after: datetime, limit: int
    ) -> int:
        text = f"SELECT TOP {limit} * FROM c WHERE c.scheduledAt > @after"  # noqa: S608  a number
        found = await self._items.query_items(text, after=format_rfc3339(scheduled_after))
        for item in found:
            times = {
                "dueAt": format_rfc3339(claimed_due_at if item["lease"] else waiting_due_at),
                "scheduledAt": format_rfc3339(waiting_due_at),
            }
            content = reschedule_stored_delivery(item["content"], waiting_due_at)
            # If another process has changed the delivery meanwhile, it was scheduled anew.
            await self._items.put_if_unchanged(item, item | times | {"content": content})
        return len(found)

    async def try_save_claimed_delivery(self, delivery: Delivery, lease_id: str) -> bool:
        saved: list[bool] = []

        def replace_if_claimed(before: Item | None) -> Item | NoChange:
            saved[:] = [before is not None and before["lease"] == lease_id]
            return _delivery_to_item(delivery) if saved[0] else None

        await self._items.change(delivery.id, delivery.endpoint, replace_if_claimed)
        return saved[0]

    async def change_delivery(
        self, endpoint_id: str, delivery_id: str, change: Callable[[Delivery], Delivery | None]
    ) -> Delivery | None:
        def change_delivery_item(before: Item | None) -> Item | NoChange:
            delivery = None if before is None else _delivery_from_item_if_valid(before)
            after = None if delivery is None else change(delivery)
            return None if after is None else _delivery_to_item(after)

        item = await self._items.change(delivery_id, endpoint_id, change_delivery_item)
        return None if item is None else _delivery_from_item_if_valid(item)

    async def list_deliveries(
        self, endpoint_id: str, status: DeliveryStatus | None, after: DeliveryPlace | None, limit: int
    ) -> Sequence[Delivery]:
        values = {"endpoint": endpoint_id, "after": "~" if after is None else _build_sort_key(*after)}
        condition = ""
        if status is not None:
            condition, values["status"] = " AND c.status = @status", status.value
        text = (
            f"SELECT TOP {limit} * FROM c WHERE c.endpoint = @endpoint AND c.place < @after{condition} "  # noqa: S608  fixed texts
            "ORDER BY c.place DESC"
        )
        found: list[Delivery] = []
        while len(found) < limit:
            items = await self._items.query_items(text, endpoint_id, **values)
            found += [each for item in items if (each := _delivery_from_item_if_valid(item)) is not None]
            if len(items) < limit:
                break
            values["after"] = items[-1]["place"]
        return found[:limit]

    async def delete_and_count_expired_deliveries(self, at: datetime, limit: int) -> int:
        text = f"SELECT TOP {limit} c.id, c.endpoint FROM c WHERE c.expiresAt <= @at"  # noqa: S608  a number
        found = await self._items.query_items(text, at=format_rfc3339(at))
        for item in found:
            await self._items.delete(item["id"], item["endpoint"])
        return len(found)


def _build_sort_key(created_at: str, delivery_id: str) -> str:
    return f"{created_at}/{delivery_id}"


def _delivery_to_item(delivery: Delivery) -> Item:
    item = {
        "id": delivery.id,
        "endpoint": delivery.endpoint,
        "status": delivery.status.value,
        "place": _build_sort_key(format_rfc3339(delivery.created_at), delivery.id),
        "lease": delivery.lease,
        "expiresAt": format_rfc3339(delivery.expires_at),
        "content": delivery.model_dump_json(),
    }
    due = delivery.next_attempt_at
    if due is None:
        return item
    return item | {
        "dueAt": format_rfc3339(due),
        "scheduledAt": format_rfc3339(delivery.scheduled_at or delivery.created_at),
    }


def _delivery_from_item_if_valid(item: Item) -> Delivery | None:
    return parse_stored_delivery_or_log_error(item["endpoint"], item["id"], item["content"])
