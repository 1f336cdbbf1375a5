"""Idempotency keys and stored replies in Cosmos DB; the container's time to live deletes them."""

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import REQUESTS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, NoChange
from shared.background.ports import CLOCK_TOLERANCE
from shared.idempotency.keys import Claim
from shared.idempotency.replies import BeginResult
from shared.timestamps import format_rfc3339, parse_rfc3339

_FREE: Final = {"lease": "", "leasedUntil": ""}
_REPEATED: Final = "isRepeated"
"""Member of a claim that a repeated request has got."""


class CosmosIdempotencyStore:
    """Implementation of IdempotencyStore: stores in Cosmos DB which request used each idempotency key first.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = _create_item_store(account)

    async def store_or_get_claim(self, key_hash: str, new_claim: Claim, at: datetime, forget_before: datetime) -> Claim:
        item_id = f"key-{key_hash}"

        def claim_if_free(before: Item | None) -> Item | NoChange:
            if before is None or _is_missing_or_expired(before, forget_before):
                return _claim_to_item(item_id, new_claim, at)
            is_new_repeat = _claim_from_item(before).is_repeated_by(new_claim) and _REPEATED not in before
            return before | {_REPEATED: True} if is_new_repeat else None

        item = await self._items.change(item_id, item_id, claim_if_free)
        return _claim_from_item(item) if item else new_claim

    async def delete_claim(self, key_hash: str, append_id: str) -> None:
        item_id = f"key-{key_hash}"
        item = await self._items.read(item_id, item_id)
        if item is not None and item["appendId"] == append_id and _REPEATED not in item:
            await self._items.delete(item_id, item_id, if_match_etag=item["_etag"])


class CosmosReplyStore:
    """Implementation of IdempotentReplyStore: stores leases and replies of idempotent requests in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = _create_item_store(account)

    async def claim_and_lease_key(
        self,
        key_hash: str,
        new_claim: Claim,
        lease_id: str,
        at: datetime,
        lease_until: datetime,
        forget_before: datetime,
    ) -> BeginResult:
        item_id = f"answer-{key_hash}"

        def lease_if_free(before: Item | None) -> Item | NoChange:
            free = before is None or _is_missing_or_expired(before, forget_before)
            item: Item = _claim_to_item(item_id, new_claim, at) | _FREE if free or before is None else before
            if "answer" not in item and item["leasedUntil"] > format_rfc3339(lease_until + CLOCK_TOLERANCE):
                # The clock was set back. A running holder renews the shortened lease; that of a crashed one soon ends.
                return item | {"leasedUntil": format_rfc3339(lease_until)}
            is_taken = "answer" in item or item["leasedUntil"] >= format_rfc3339(at)
            if is_taken or item["fingerprint"] != new_claim.fingerprint:
                return None
            return item | {"lease": lease_id, "leasedUntil": format_rfc3339(lease_until)}

        item = await self._items.change(item_id, item_id, lease_if_free)
        if item is None:
            # The change above creates a missing item, so another request has deleted it since.
            return BeginResult(new_claim, None, owns_lease=False)
        answer = base64.b64decode(item["answer"]) if "answer" in item else None
        return BeginResult(_claim_from_item(item), answer, owns_lease=answer is None and item["lease"] == lease_id)

    async def renew_lease(self, key_hash: str, lease_id: str, lease_until: datetime) -> None:
        await self._try_change_leased_reply(
            key_hash, lease_id, lambda item: item | {"leasedUntil": format_rfc3339(lease_until)}
        )

    async def try_save_reply(self, key_hash: str, lease_id: str, encrypted_reply: bytes) -> bool:
        member = {"answer": base64.b64encode(encrypted_reply).decode()}
        return await self._try_change_leased_reply(key_hash, lease_id, lambda item: item | member)

    async def release_lease(self, key_hash: str, lease_id: str, *, deletes_claim: bool) -> None:
        if not deletes_claim:
            await self._try_change_leased_reply(key_hash, lease_id, lambda item: item | _FREE)
            return
        item_id = f"answer-{key_hash}"
        item = await self._items.read(item_id, item_id)
        if item is not None and item["lease"] == lease_id and "answer" not in item:
            await self._items.delete(item_id, item_id, if_match_etag=item["_etag"])

    async def _try_change_leased_reply(
        self, key_hash: str, lease_id: str, change: Callable[[dict[str, Any]], Item]
    ) -> bool:
        """Change a stored reply if the caller still has the lease; return False if it has lost the lease."""
        item_id, has_lease = f"answer-{key_hash}", False

        def change_if_leased(before: Item | None) -> Item | NoChange:
            nonlocal has_lease
            has_lease = before is not None and before["lease"] == lease_id
            return change(before) if before is not None and has_lease else None

        await self._items.change(item_id, item_id, change_if_leased)
        return has_lease


def _create_item_store(account: CosmosAccount) -> CosmosItemStore:
    return CosmosItemStore(account, REQUESTS, "IDEMPOTENCY_UNAVAILABLE", "the store of idempotency keys")


def _claim_to_item(item_id: str, claim: Claim, at: datetime) -> Item:
    return {"id": item_id, "fingerprint": claim.fingerprint, "appendId": claim.append_id, "madeAt": format_rfc3339(at)}


def _claim_from_item(item: Item) -> Claim:
    return Claim(item["fingerprint"], item["appendId"])


def _is_missing_or_expired(item: Item | None, forget_before: datetime) -> bool:
    # The time to live deletes items late, so expired ones are ignored here.
    return item is None or parse_rfc3339(item["madeAt"]) < forget_before
