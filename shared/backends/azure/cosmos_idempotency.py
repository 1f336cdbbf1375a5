"""Idempotency keys in Cosmos DB; they expire by themselves, an hour after they count no more."""

from datetime import datetime
from typing import Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import REQUESTS
from shared.backends.azure.cosmos_state import CosmosState, Item
from shared.idempotency.keys import Claim
from shared.timestamps import parse_rfc3339, rfc3339

UNAVAILABLE: Final = "IDEMPOTENCY_UNAVAILABLE"
WHAT: Final = "the store of idempotency keys"


class CosmosIdempotencyStore:
    """The IdempotencyStore port over Cosmos DB.

    Args:
        account: where the container is.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._state = CosmosState(account, REQUESTS, UNAVAILABLE, WHAT)

    async def claim(self, key: str, wanted: Claim, at: datetime, forget_before: datetime) -> Claim:
        """Return what a key stands for."""

        def claimed(before: Item | None) -> Item | None:
            return claim_item(_id(key), wanted, at) if is_free(before, forget_before) else None

        item = await self._state.change(_id(key), _id(key), claimed)
        return claim_of(item) if item else wanted

    async def forget(self, key: str, append_id: str) -> None:
        """Make a key free again."""
        item = await self._state.read(_id(key), _id(key))
        if item is not None and item["appendId"] == append_id:
            await self._state.forget(_id(key), _id(key), etag=item["_etag"])


def claim_item(item_id: str, claim: Claim, at: datetime) -> Item:
    """Return the item of a claim."""
    return {"id": item_id, "fingerprint": claim.fingerprint, "appendId": claim.append_id, "madeAt": rfc3339(at)}


def claim_of(item: Item) -> Claim:
    """Return the claim of an item."""
    return Claim(item["fingerprint"], item["appendId"])


def is_free(item: Item | None, forget_before: datetime) -> bool:
    """Return whether there is no claim that still counts; expiry deletes when it finds the time."""
    return item is None or parse_rfc3339(item["madeAt"]) < forget_before


def _id(key: str) -> str:
    return f"key-{key}"
