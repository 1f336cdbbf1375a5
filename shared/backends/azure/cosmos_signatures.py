"""Refused attempts to sign, sign-ins that signatures have used, and the index of signatures, in Cosmos DB.

A sign-in that has signed a decision is stored, because the workspace can allow only one signature for each sign-in.

Each member's refused attempts are one item in a separate partition, and each use of a sign-in is one item in a separate
partition. All signatures, and the progress of their index, are in one common partition. The partition ``index``
contains the index of an earlier version, and is not read.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import SIGNATURES
from shared.backends.azure.cosmos_item_store import MAX_OPERATIONS, CosmosItemStore, Item, NoChange
from shared.backends.azure.cosmos_requests import Operation
from shared.provenance.ports import ChainKey
from shared.signatures.ports import (
    AttemptsJson,
    Change,
    IndexedSignature,
    IndexProgress,
    SignatureFilter,
    SignInUseJson,
)

_SIGN_IN_SECONDS: Final = 24 * 3600
"""Seconds after which Cosmos DB deletes the use of a sign-in."""

INDEX_PARTITION: Final = "index-2"
"""Partition key of the items of the index of signatures."""
_MAX_BATCH_BYTES: Final = 1_000_000
"""Maximum size of the items in a batch; Cosmos DB limits a request to 2 MB."""
_COMPLETE_TO: Final = "completeTo"
_LAST: Final = "~"
"""Text that is greater than every place of the index."""


class CosmosSignatureStore:
    """Implementation of SignatureStore: stores refused attempts to sign and the use of sign-ins for signatures.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = _create_item_store(account)

    async def find_refused_attempts(self, member_id: str) -> AttemptsJson | None:
        place = f"attempts-{_compute_sha256_hex(member_id)}"
        return _parse_content(await self._items.read(place, place))

    async def change_refused_attempts(self, member_id: str, change: Change[AttemptsJson]) -> AttemptsJson | None:
        place = f"attempts-{_compute_sha256_hex(member_id)}"

        def change_attempts_item(before: Item | None) -> Item | NoChange:
            after = change(_parse_content(before))
            if after is None:
                return None
            item = {"id": place, "place": place, "pending": bool(after["pending"]), "content": json.dumps(after)}
            return {**(before or {}), **item}

        return _parse_content(await self._items.change(place, place, change_attempts_item))

    async def list_attempts_with_unreported_lock_outs(self) -> Sequence[AttemptsJson]:
        found = await self._items.query_items("SELECT * FROM c WHERE c.pending = true")
        return [json.loads(item["content"]) for item in found]

    async def change_sign_in_use(
        self,
        sign_in_name: str,
        change: Change[SignInUseJson],
        at: datetime,  # noqa: ARG002  uses expire by their ttl
    ) -> SignInUseJson | None:
        place = f"sign-in-{sign_in_name}"

        def change_sign_in_item(before: Item | None) -> Item | NoChange:
            after = change(_parse_content(before))
            if after is None:
                return None
            item = {"id": place, "place": place, "content": json.dumps(after), "ttl": _SIGN_IN_SECONDS}
            return {**(before or {}), **item}

        return _parse_content(await self._items.change(place, place, change_sign_in_item))


class CosmosSignatureIndex:
    """Implementation of SignatureIndex: stores the index of all signatures in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._items = _create_item_store(account)

    async def read_index_end_time(self) -> str:
        item = await self._items.read(_COMPLETE_TO, INDEX_PARTITION)
        return "" if item is None else str(item["time"])

    async def save_time_indexed_until(self, time: str) -> None:
        def advance_stored_time(before: Item | None) -> Item | NoChange:
            if before is not None and before["time"] >= time:
                return None
            return {**(before or {}), "id": _COMPLETE_TO, "place": INDEX_PARTITION, "time": time}

        await self._items.change(_COMPLETE_TO, INDEX_PARTITION, advance_stored_time)

    async def read_progress(self, chain: ChainKey) -> IndexProgress:
        return _parse_progress(await self._items.read(_build_progress_id(chain), INDEX_PARTITION))

    async def add_signatures(
        self, chain: ChainKey, signatures: Sequence[IndexedSignature], progress: IndexProgress
    ) -> None:
        for items in _split_into_batches([_signature_to_item(one, chain) for one in signatures]):
            operations: list[Operation] = [("upsert", (item,), {}) for item in items]
            await self._items.commit_batch(INDEX_PARTITION, operations)
        item_id = _build_progress_id(chain)

        def advance_stored_progress(before: Item | None) -> Item | NoChange:
            if before is not None and before["sequence"] >= progress.sequence:
                return None
            return {**(before or {}), "id": item_id, "place": INDEX_PARTITION, **progress._asdict()}

        await self._items.change(item_id, INDEX_PARTITION, advance_stored_progress)

    async def remove_signatures(self, chain: ChainKey, progress: IndexProgress) -> None:
        # Another process may do the same and then add signatures again. It changes the progress or the ETags first.
        sql = "SELECT c.id, c._etag FROM c WHERE c.chain = @chain"
        found = await self._items.query_items(sql, INDEX_PARTITION, chain=_build_chain_id(chain))
        stored = await self._items.read(_build_progress_id(chain), INDEX_PARTITION)
        if stored is None or _parse_progress(stored) != progress:
            return
        for item in found:
            await self._items.delete(item["id"], INDEX_PARTITION, if_match_etag=item["_etag"])
        await self._items.delete(stored["id"], INDEX_PARTITION, if_match_etag=stored["_etag"])

    async def list_signatures(
        self, signature_filter: SignatureFilter, after_place: str, limit: int
    ) -> Sequence[IndexedSignature]:
        conditions = ["c.sort >= @start", "c.sort < @end"]
        values = {"start": signature_filter.start, "end": min(signature_filter.end or _LAST, after_place or _LAST)}
        if signature_filter.user_id is not None:
            conditions.append("c.userId = @userId")
            values["userId"] = signature_filter.user_id
        where = " AND ".join(conditions)
        text = f"SELECT TOP {int(limit)} * FROM c WHERE {where} ORDER BY c.sort DESC"  # noqa: S608  our own names
        found = await self._items.query_items(text, INDEX_PARTITION, **values)
        return [IndexedSignature(item["sort"], item["userId"], json.loads(item["content"])) for item in found]


def _create_item_store(account: CosmosAccount) -> CosmosItemStore:
    return CosmosItemStore(account, SIGNATURES, "SIGNATURES_UNAVAILABLE", "the store of signatures")


def _parse_content(item: Item | None) -> dict[str, Any] | None:
    value: dict[str, Any] | None = None if item is None else json.loads(item["content"])
    return value


def _parse_progress(item: Item | None) -> IndexProgress:
    return IndexProgress() if item is None else IndexProgress(item["sequence"], item["hash"])


def _signature_to_item(signature: IndexedSignature, chain: ChainKey) -> Item:
    content = json.dumps(dict(signature.content))
    return {
        "id": signature.place,
        "place": INDEX_PARTITION,
        "sort": signature.place,
        "chain": _build_chain_id(chain),
        "userId": signature.user_id,
        "content": content,
    }


def _split_into_batches(items: Sequence[Item]) -> list[list[Item]]:
    """Split items into batches of at most ``MAX_OPERATIONS`` items and ``_MAX_BATCH_BYTES``."""
    batches: list[list[Item]] = []
    size = 0
    for item in items:
        item_bytes = len(json.dumps(item))
        if not batches or len(batches[-1]) >= MAX_OPERATIONS or size + item_bytes > _MAX_BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(item)
        size += item_bytes
    return batches


def _build_progress_id(chain: ChainKey) -> str:
    return f"progress-{_build_chain_id(chain)}"


def _build_chain_id(chain: ChainKey) -> str:
    return _compute_sha256_hex(f"{chain.target}/{chain.scope_key}")


def _compute_sha256_hex(text: str) -> str:
    """Return the SHA-256 of a text, because ids of items cannot contain all characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
