"""Jobs for downloads, audit bundles and imports, and due times and leases of periodic background jobs, in Cosmos DB.

Each job is one item, which is replaced under If-Match.
"""

import base64
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import BACKGROUND, DOWNLOADS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, NoChange
from shared.background.ports import JobClaim, cap_stored_time
from shared.downloads.models import Job
from shared.timestamps import format_rfc3339, parse_rfc3339

LONG_BYTES: Final = 200_000
"""Number of characters above which the JSON text of a job is compressed; Cosmos DB limits an item to 2 MB."""
_MAX_CACHED: Final = 4
"""Number of compressed jobs that are cached; one can take tens of megabytes."""


class CosmosJobStore:
    """Implementation of JobStore: stores jobs for downloads, audit bundles and imports in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = CosmosItemStore(account, DOWNLOADS, "DOWNLOADS_UNAVAILABLE", "the store of downloads")
        self._runtime = account.runtime
        # Compressed jobs by id, with their ETags. Requests and running parts read a job several times a second.
        self._cached: OrderedDict[str, tuple[str, Job]] = OrderedDict()

    async def create(self, job: Job) -> None:
        if await self._items.put_if_unchanged(None, _job_to_item(job)) is None:
            raise self._items.build_unavailable_error()

    async def find_job(self, job_id: str) -> Job | None:
        item = await self._items.read(job_id, job_id)
        if item is None or "job" in item:
            return None if item is None else _job_from_item(item)
        etag, cached = self._cached.get(job_id, ("", None))
        if cached is not None and etag == item["_etag"]:
            return cached
        job = await self._runtime.run_in_thread(_job_from_item, item)
        self._cached[job_id] = (item["_etag"], job)
        self._cached.move_to_end(job_id)
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)
        return job

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        def change_job_item(before: Item | None) -> Item | NoChange:
            return None if before is None else _job_to_item(change(_job_from_item(before)))

        item = await self._items.change(job_id, job_id, change_job_item)
        return None if item is None else _job_from_item(item)

    async def list_jobs_of_owner(self, owner_id: str) -> Sequence[Job]:
        found = await self._items.query_items("SELECT * FROM c WHERE c.owner = @owner", owner=owner_id)
        jobs = sorted(map(_job_from_item, found), key=lambda job: job.id)
        return sorted(jobs, key=lambda job: job.created_at, reverse=True)

    async def list_expired_job_ids(self, at: datetime) -> Sequence[str]:
        text = "SELECT c.id, c.expiresAt FROM c WHERE c.expiresAt <= @at"
        found = await self._items.query_items(text, at=format_rfc3339(at))
        return [item["id"] for item in sorted(found, key=lambda item: (item["expiresAt"], item["id"]))]

    async def delete(self, job_id: str) -> None:
        await self._items.delete(job_id, job_id)


def _job_to_item(job: Job) -> Item:
    text = job.model_dump_json()
    content = {"job": text}
    if len(text) > LONG_BYTES:
        content = {"packed": base64.b64encode(zlib.compress(text.encode())).decode()}
    return {"id": job.id, "owner": job.owner, "expiresAt": format_rfc3339(job.expires_at), **content}


def _job_from_item(item: Item) -> Job:
    text = item["job"] if "job" in item else zlib.decompress(base64.b64decode(item["packed"]))
    return Job.model_validate_json(text)


class CosmosJobLeaseStore:
    """Implementation of JobLeaseStore: stores due times and leases of periodic background jobs in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        name = "the store of background jobs"
        self._items = CosmosItemStore(account, BACKGROUND, "BACKGROUND_JOBS_UNAVAILABLE", name)

    async def claim_job(
        self, job_name: str, holder_id: str, at: datetime, leased_until: datetime, first_due: datetime
    ) -> JobClaim:
        claims: list[JobClaim] = []

        def claim_if_due(before: Item | None) -> Item | NoChange:
            item = before or {"id": job_name, "dueAt": format_rfc3339(first_due), "holder": "", "heldUntil": ""}
            due_at = cap_stored_time(parse_rfc3339(item["dueAt"]), first_due)
            free_at, item = due_at, {**item, "dueAt": format_rfc3339(due_at)}
            if item["holder"] not in ("", holder_id):
                lease_end = cap_stored_time(parse_rfc3339(item["heldUntil"]), leased_until)
                free_at, item = max(due_at, lease_end), {**item, "heldUntil": format_rfc3339(lease_end)}
            if free_at > at:
                claims[:] = [JobClaim(granted=False, next_attempt=free_at)]
                is_unchanged = before is not None and all(before[name] == item[name] for name in ("dueAt", "heldUntil"))
                return None if is_unchanged else item
            claims[:] = [JobClaim(granted=True, next_attempt=leased_until)]
            return {**item, "holder": holder_id, "heldUntil": format_rfc3339(leased_until)}

        await self._items.change(job_name, job_name, claim_if_due)
        return claims[0]

    async def try_extend_lease(self, job_name: str, holder_id: str, leased_until: datetime) -> bool:
        def extend_if_held(before: Item | None) -> Item | NoChange:
            return (
                {**before, "heldUntil": format_rfc3339(leased_until)}
                if before and before["holder"] == holder_id
                else None
            )

        item = await self._items.change(job_name, job_name, extend_if_held)
        return item is not None and item["holder"] == holder_id

    async def release_lease(self, job_name: str, holder_id: str, next_due_at: datetime) -> None:
        def release_if_held(before: Item | None) -> Item | NoChange:
            if before is None or before["holder"] != holder_id:
                return None
            return {**before, "dueAt": format_rfc3339(next_due_at), "holder": "", "heldUntil": ""}

        await self._items.change(job_name, job_name, release_if_held)
