"""Download jobs in Cosmos DB: an item each, replaced under If-Match."""

import base64
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import DOWNLOADS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item
from shared.downloads.models import Job
from shared.timestamps import rfc3339

LONG_BYTES: Final = 200_000
"""Beyond it a job's text is stored compressed; an item holds 2 MB."""


class CosmosJobStore:
    """The JobStore port over Cosmos DB.

    Args:
        account: where the container is.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._state = CosmosItemStore(account, DOWNLOADS, "DOWNLOADS_UNAVAILABLE", "the store of downloads")

    async def create(self, job: Job) -> None:
        """Store a new job."""
        if await self._state.put(None, _item(job)) is None:
            raise self._state.unavailable()

    async def get(self, job_id: str) -> Job | None:
        """Return a job, None when there is none."""
        item = await self._state.read(job_id, job_id)
        return None if item is None else _job(item)

    async def change(self, job_id: str, change: Callable[[Job], Job]) -> Job | None:
        """Replace a job by what a function makes of it."""

        def changed(before: Item | None) -> Item | None:
            return None if before is None else _item(change(_job(before)))

        item = await self._state.change(job_id, job_id, changed)
        return None if item is None else _job(item)

    async def list_owned(self, owner: str) -> Sequence[Job]:
        """Return somebody's jobs, newest first."""
        found = await self._state.find("SELECT * FROM c WHERE c.owner = @owner", owner=owner)
        jobs = sorted(map(_job, found), key=lambda job: job.id)
        return sorted(jobs, key=lambda job: job.created_at, reverse=True)

    async def list_expired(self, at: datetime) -> Sequence[str]:
        """Return the ids of the jobs that are past their end."""
        text = "SELECT c.id, c.expiresAt FROM c WHERE c.expiresAt <= @at"
        found = await self._state.find(text, at=rfc3339(at))
        return [item["id"] for item in sorted(found, key=lambda item: (item["expiresAt"], item["id"]))]

    async def delete(self, job_id: str) -> None:
        """Forget a job."""
        await self._state.delete(job_id, job_id)


def _item(job: Job) -> Item:
    text = job.model_dump_json()
    content = {"job": text}
    if len(text) > LONG_BYTES:
        content = {"packed": base64.b64encode(zlib.compress(text.encode())).decode()}
    return {"id": job.id, "owner": job.owner, "expiresAt": rfc3339(job.expires_at), **content}


def _job(item: Item) -> Job:
    text = item["job"] if "job" in item else zlib.decompress(base64.b64decode(item["packed"]))
    return Job.model_validate_json(text)
