"""Quota reservations of live streams and jobs in Cosmos DB; each reservation counts against its principal's quota.

Each principal has two small items, one with all stream reservations and one with all job reservations. Each item is
replaced with an If-Match condition. One item contains all reservations, because a condition on one item cannot enforce
a limit over several items.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import DOWNLOADS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, NoChange
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

    async def try_reserve(
        self, principal: str, purpose: Purpose, reservation_id: str, *, at_unix_seconds: float, max_reservations: int
    ) -> bool:
        def add_reservation(reservations: _Reservations) -> _Reservations | NoChange:
            if (
                reservation_id in reservations
                or sum(place.active for place in reservations.values()) >= max_reservations
            ):
                return None
            return {**reservations, reservation_id: QuotaReservation(reservation_id, at_unix_seconds)}

        return reservation_id in await self._change_and_return_reservations(principal, purpose, add_reservation)

    async def try_raise_reserved_size(
        self,
        principal: str,
        purpose: Purpose,
        reservation_id: str,
        *,
        new_size: int,
        at_unix_seconds: float,
        max_total_size: int,
    ) -> bool:
        allowed = False

        def increase_reserved_size(reservations: _Reservations) -> _Reservations | NoChange:
            nonlocal allowed
            before = reservations.get(reservation_id, QuotaReservation(reservation_id, at_unix_seconds))
            others = sum(place.size for place in reservations.values() if place.id != reservation_id)
            allowed = others + new_size <= max_total_size
            if not allowed or (reservation_id in reservations and new_size <= before.size):
                return None
            return {
                **reservations,
                reservation_id: QuotaReservation(
                    reservation_id, before.taken_at, before.active, max(new_size, before.size)
                ),
            }

        await self._change_and_return_reservations(principal, purpose, increase_reserved_size)
        return allowed

    async def mark_inactive(self, principal: str, purpose: Purpose, reservation_id: str) -> None:
        def mark_reservation_inactive(reservations: _Reservations) -> _Reservations | NoChange:
            place = reservations.get(reservation_id)
            if place is None or not place.active:
                return None
            return {
                **reservations,
                reservation_id: QuotaReservation(reservation_id, place.taken_at, active=False, size=place.size),
            }

        await self._change_and_return_reservations(principal, purpose, mark_reservation_inactive)

    async def delete_reservations(self, principal: str, purpose: Purpose, reservation_ids: Collection[str]) -> None:
        def remove_reservations(reservations: _Reservations) -> _Reservations | NoChange:
            remaining = {
                reservation_id: place
                for reservation_id, place in reservations.items()
                if reservation_id not in reservation_ids
            }
            return remaining if len(remaining) < len(reservations) else None

        await self._change_and_return_reservations(principal, purpose, remove_reservations)

    async def list_reservations(self, principal: str, purpose: Purpose) -> Sequence[QuotaReservation]:
        item_id = _build_item_id(principal, purpose)
        places = _reservations_from_item(await self._items.read(item_id, item_id))
        return sorted(places.values(), key=lambda place: (place.taken_at, place.id))

    async def _change_and_return_reservations(
        self, principal: str, purpose: Purpose, change: Callable[[_Reservations], _Reservations | NoChange]
    ) -> _Reservations:
        """Replace a principal's reservations by the result of ``change``, or keep them if the result is None.

        Return the stored reservations.
        """
        item_id = _build_item_id(principal, purpose)

        def change_reservations_item(before: Item | None) -> Item | NoChange:
            after = change(_reservations_from_item(before))
            if after is None:
                return None
            members = {place.id: [place.taken_at, place.active, place.size] for place in after.values()}
            return {"id": item_id, "places": members}

        return _reservations_from_item(await self._items.change(item_id, item_id, change_reservations_item))


def _build_item_id(principal: str, purpose: Purpose) -> str:
    return f"places-{purpose}-{hashlib.sha256(principal.encode()).hexdigest()}"


def _reservations_from_item(item: Mapping[str, Any] | None) -> _Reservations:
    stored = {} if item is None else item["places"]
    return {
        reservation_id: QuotaReservation(reservation_id, float(taken_at), bool(active), int(size))
        for reservation_id, (taken_at, active, size) in stored.items()
    }
