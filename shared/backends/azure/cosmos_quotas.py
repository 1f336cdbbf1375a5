"""Reservations of live streams and jobs, which count against quotas, in Cosmos DB.

Each principal has two small items, one with all stream reservations and one with all job reservations. Each item is
replaced with an If-Match condition. One item contains all reservations, because a condition on one item cannot enforce
a limit over several items.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import DOWNLOADS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.fair_use.ports import Purpose, QuotaReservation

type _Reservations = dict[str, QuotaReservation]
"""Reservations of one principal for one purpose, by reservation id."""


class CosmosQuotaStore:
    """Implementation of QuotaStore: stores quota reservations of principals in Cosmos DB.

    The items share the container of the downloads, because it has no time to live; queries for downloads do not return
    these items.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = CosmosItemStore(account, DOWNLOADS, "QUOTAS_UNAVAILABLE", "the store of quotas")

    async def reserve(self, principal: str, purpose: Purpose, reservation_id: str, *, at: float, limit: int) -> bool:
        def add_reservation(places: _Reservations) -> _Reservations | None:
            if reservation_id in places or sum(place.active for place in places.values()) >= limit:
                return None
            return {**places, reservation_id: QuotaReservation(reservation_id, at)}

        return reservation_id in await self._change_reservations(principal, purpose, add_reservation)

    async def increase_size(
        self, principal: str, purpose: Purpose, reservation_id: str, *, size: int, at: float, limit: int
    ) -> bool:
        allowed = False

        def increase_reserved_size(places: _Reservations) -> _Reservations | None:
            nonlocal allowed
            before = places.get(reservation_id, QuotaReservation(reservation_id, at))
            others = sum(place.size for place in places.values() if place.id != reservation_id)
            allowed = others + size <= limit
            if not allowed or (reservation_id in places and size <= before.size):
                return None
            return {
                **places,
                reservation_id: QuotaReservation(
                    reservation_id, before.taken_at, before.active, max(size, before.size)
                ),
            }

        await self._change_reservations(principal, purpose, increase_reserved_size)
        return allowed

    async def mark_inactive(self, principal: str, purpose: Purpose, reservation_id: str) -> None:
        def mark_inactive(places: _Reservations) -> _Reservations | None:
            place = places.get(reservation_id)
            if place is None or not place.active:
                return None
            return {
                **places,
                reservation_id: QuotaReservation(reservation_id, place.taken_at, active=False, size=place.size),
            }

        await self._change_reservations(principal, purpose, mark_inactive)

    async def delete_reservations(self, principal: str, purpose: Purpose, reservation_ids: Collection[str]) -> None:
        def remove_reservations(places: _Reservations) -> _Reservations | None:
            remaining = {
                reservation_id: place
                for reservation_id, place in places.items()
                if reservation_id not in reservation_ids
            }
            return remaining if len(remaining) < len(places) else None

        await self._change_reservations(principal, purpose, remove_reservations)

    async def list_reservations(self, principal: str, purpose: Purpose) -> Sequence[QuotaReservation]:
        item_id = _build_item_id(principal, purpose)
        places = _reservations_from_item(await self._items.read(item_id, item_id))
        return sorted(places.values(), key=lambda place: (place.taken_at, place.id))

    async def _change_reservations(
        self, principal: str, purpose: Purpose, change: Callable[[_Reservations], _Reservations | None]
    ) -> _Reservations:
        """Replace a principal's reservations by the result of ``change``, or keep them if the result is None.

        Return the stored reservations.
        """
        item_id = _build_item_id(principal, purpose)

        def change_item(before: Item | None) -> Item | None:
            after = change(_reservations_from_item(before))
            if after is None:
                return None
            members = {place.id: [place.taken_at, place.active, place.size] for place in after.values()}
            return {"id": item_id, "places": members}

        return _reservations_from_item(await self._items.change(item_id, item_id, change_item))


def _build_item_id(principal: str, purpose: Purpose) -> str:
    return f"places-{purpose}-{hashlib.sha256(principal.encode()).hexdigest()}"


def _reservations_from_item(item: Mapping[str, Any] | None) -> _Reservations:
    stored = {} if item is None else item["places"]
    return {
        reservation_id: QuotaReservation(reservation_id, float(taken_at), bool(active), int(size))
        for reservation_id, (taken_at, active, size) in stored.items()
    }
