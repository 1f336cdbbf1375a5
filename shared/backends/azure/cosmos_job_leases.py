"""Due times and leases of background jobs in Cosmos DB. Each job is one item, replaced under If-Match."""

from datetime import datetime

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import BACKGROUND
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.background.ports import JobClaim, limit_stored_time
from shared.timestamps import parse_rfc3339, rfc3339


class CosmosJobLeaseStore:
    """Implementation of JobLeaseStore: stores leases of background jobs in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        name = "the store of background jobs"
        self._items = CosmosItemStore(account, BACKGROUND, "BACKGROUND_JOBS_UNAVAILABLE", name)

    async def claim(self, job: str, holder: str, at: datetime, until: datetime, first_due: datetime) -> JobClaim:
        claims: list[JobClaim] = []

        def claim_if_due(before: Item | None) -> Item | None:
            item = before or {"id": job, "dueAt": rfc3339(first_due), "holder": "", "heldUntil": ""}
            due_at = limit_stored_time(parse_rfc3339(item["dueAt"]), first_due)
            free_at, item = due_at, {**item, "dueAt": rfc3339(due_at)}
            if item["holder"] not in ("", holder):
                lease_end = limit_stored_time(parse_rfc3339(item["heldUntil"]), until)
                free_at, item = max(due_at, lease_end), {**item, "heldUntil": rfc3339(lease_end)}
            if free_at > at:
                claims[:] = [JobClaim(granted=False, next_attempt=free_at)]
                is_unchanged = before is not None and all(before[name] == item[name] for name in ("dueAt", "heldUntil"))
                return None if is_unchanged else item
            claims[:] = [JobClaim(granted=True, next_attempt=until)]
            return {**item, "holder": holder, "heldUntil": rfc3339(until)}

        await self._items.change(job, job, claim_if_due)
        return claims[0]

    async def extend(self, job: str, holder: str, until: datetime) -> bool:
        def extend_if_held(before: Item | None) -> Item | None:
            return {**before, "heldUntil": rfc3339(until)} if before and before["holder"] == holder else None

        item = await self._items.change(job, job, extend_if_held)
        return item is not None and item["holder"] == holder

    async def release(self, job: str, holder: str, due_at: datetime) -> None:
        def release_if_held(before: Item | None) -> Item | None:
            if before is None or before["holder"] != holder:
                return None
            return {**before, "dueAt": rfc3339(due_at), "holder": "", "heldUntil": ""}

        await self._items.change(job, job, release_if_held)
