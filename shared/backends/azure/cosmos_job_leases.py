"""Due times and leases of background jobs in Cosmos DB. Each job is one item, replaced under If-Match."""

from datetime import datetime

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import BACKGROUND
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.background.ports import JobClaim
from shared.timestamps import parse_rfc3339, rfc3339


class CosmosJobLeaseStore:
    """The JobLeaseStore port over Cosmos DB.

    Args:
        account: the account that holds the container.
    """

    def __init__(self, account: CosmosAccount) -> None:
        name = "the store of background jobs"
        self._items = CosmosItemStore(account, BACKGROUND, "BACKGROUND_JOBS_UNAVAILABLE", name)

    async def claim(self, job: str, holder: str, at: datetime, until: datetime, first_due: datetime) -> JobClaim:
        claims: list[JobClaim] = []

        def change(before: Item | None) -> Item | None:
            item = before or {"id": job, "dueAt": rfc3339(first_due), "holder": "", "heldUntil": ""}
            free_at = item["dueAt"] if item["holder"] in ("", holder) else max(item["dueAt"], item["heldUntil"])
            if free_at > rfc3339(at):
                claims[:] = [JobClaim(granted=False, next_attempt=parse_rfc3339(free_at))]
                return item if before is None else None
            claims[:] = [JobClaim(granted=True, next_attempt=until)]
            return {**item, "holder": holder, "heldUntil": rfc3339(until)}

        await self._items.change(job, job, change)
        return claims[0]

    async def extend(self, job: str, holder: str, until: datetime) -> bool:
        def change(before: Item | None) -> Item | None:
            return {**before, "heldUntil": rfc3339(until)} if before and before["holder"] == holder else None

        item = await self._items.change(job, job, change)
        return item is not None and item["holder"] == holder

    async def release(self, job: str, holder: str, due_at: datetime) -> None:
        def change(before: Item | None) -> Item | None:
            if before is None or before["holder"] != holder:
                return None
            return {**before, "dueAt": rfc3339(due_at), "holder": "", "heldUntil": ""}

        await self._items.change(job, job, change)
