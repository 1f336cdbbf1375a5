"""Quota of live streams and jobs in Cosmos DB: one small item per principal and purpose, replaced under If-Match.

All places of a principal are in one item, because a conditional write cannot enforce a limit over several items.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import DOWNLOADS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.fair_use.ports import Purpose, QuotaReservation

type _Places = dict[str, QuotaReservation]


class CosmosPlaceStore:
    """The QuotaStore port over Cosmos DB.

    The items are in the container of downloads, which has no time to live; its queries do not match them.

    Args:
        account: the account that holds the container.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = CosmosItemStore(account, DOWNLOADS, "QUOTAS_UNAVAILABLE", "the store of quotas")

    async def take(self, principal: str, purpose: Purpose, place_id: str, *, at: float, limit: int) -> bool:
        def change(places: _Places) -> _Places | None:
            if place_id in places or sum(place.active for place in places.values()) >= limit:
                return None
            return {**places, place_id: QuotaReservation(place_id, at)}

        return place_id in await self._change(principal, purpose, change)

    async def grow(self, principal: str, purpose: Purpose, place_id: str, *, size: int, at: float, limit: int) -> bool:
        allowed = False

        def change(places: _Places) -> _Places | None:
            nonlocal allowed
            before = places.get(place_id, QuotaReservation(place_id, at))
            others = sum(place.size for place in places.values() if place.id != place_id)
            allowed = others + size <= limit
            if not allowed or (place_id in places and size <= before.size):
                return None
            return {
                **places,
                place_id: QuotaReservation(place_id, before.taken_at, before.active, max(size, before.size)),
            }

        await self._change(principal, purpose, change)
        return allowed

    async def finish(self, principal: str, purpose: Purpose, place_id: str) -> None:
        def change(places: _Places) -> _Places | None:
            place = places.get(place_id)
            if place is None or not place.active:
                return None
            return {**places, place_id: QuotaReservation(place_id, place.taken_at, active=False, size=place.size)}

        await self._change(principal, purpose, change)

    async def free(self, principal: str, purpose: Purpose, place_ids: Collection[str]) -> None:
        def change(places: _Places) -> _Places | None:
            remaining = {place_id: place for place_id, place in places.items() if place_id not in place_ids}
            return remaining if len(remaining) < len(places) else None

        await self._change(principal, purpose, change)

    async def list_reservations(self, principal: str, purpose: Purpose) -> Sequence[QuotaReservation]:
        item_id = _build_item_id(principal, purpose)
        places = _places_from_item(await self._items.read(item_id, item_id))
        return sorted(places.values(), key=lambda place: (place.taken_at, place.id))

    async def _change(self, principal: str, purpose: Purpose, change: Callable[[_Places], _Places | None]) -> _Places:
        """Replace the places by the result of a function, None for no change; return the resulting places."""
        item_id = _build_item_id(principal, purpose)

        def change_item(before: Item | None) -> Item | None:
            after = change(_places_from_item(before))
            if after is None:
                return None
            members = {place.id: [place.taken_at, place.active, place.size] for place in after.values()}
            return {"id": item_id, "places": members}

        return _places_from_item(await self._items.change(item_id, item_id, change_item))


def _build_item_id(principal: str, purpose: Purpose) -> str:
    return f"places-{purpose}-{hashlib.sha256(principal.encode()).hexdigest()}"


def _places_from_item(item: Mapping[str, Any] | None) -> _Places:
    stored = {} if item is None else item["places"]
    return {
        place_id: QuotaReservation(place_id, float(taken_at), bool(active), int(size))
        for place_id, (taken_at, active, size) in stored.items()
    }
