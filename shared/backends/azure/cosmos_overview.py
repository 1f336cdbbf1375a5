"""Summaries of all audit chains and the index of pending amendments, in Cosmos DB.

The head item of a chain contains the chain's counts. A separate status item contains the size of the newest checkpoint
and the last verification, so that storing these values never delays an append.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import batched, groupby
from typing import Any, Final, NamedTuple

from azure.core.exceptions import AzureError

from shared.backends.azure import cosmos_chain_items as items
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_chain_items import HeadCounts, SegmentHead
from shared.backends.azure.cosmos_containers import DEFINITIONS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, NoChange
from shared.backends.azure.cosmos_queries import query_items
from shared.backends.azure.cosmos_requests import Operation, ReadRetries, build_unavailable_error
from shared.provenance.hash_rule import format_record_id
from shared.provenance.overview_ports import (
    ChainSummary,
    PendingEntry,
    PendingPlace,
    StoredVerdict,
    build_verdict_if_valid,
    compute_latest_verdict_time,
)
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    Filters,
    LookupField,
    OutcomeUnknownError,
    Target,
    TipMovedError,
)

READS_AT_ONCE: Final = 16
COUNTED_AT_ONCE: Final = 100
CHANGE_SECONDS: Final = 30.0
_PAGE: Final = 1_000
_BYTES: Final = 8_000_000
_LONGEST_WAIT_SECONDS: Final = 0.05
_IS_PENDING: Final = "c.p.Status = 'pending' AND NOT IS_DEFINED(c.p.AmendmentID)"
_SUMMARIES: Final = "SELECT * FROM c WHERE c.scope {comparison} @after ORDER BY c.scope"
_BROKEN: Final = (
    "SELECT * FROM c WHERE c.id = 'status' AND c.verdict.valid = false AND c.scope {comparison} @after ORDER BY c.scope"
)
_UNCOUNTED: Final = "SELECT * FROM c WHERE c.id = 'head' AND (NOT IS_DEFINED(c.counts['from']) OR c.counts['from'] > 0)"
_PENDING: Final = "SELECT * FROM c WHERE c.pendingAt >= @from ORDER BY c.pendingAt"
_PENDING_OF_SEGMENT: Final = "SELECT c.sequences FROM c WHERE c.id BETWEEN @first AND @last ORDER BY c.id DESC"


class _SortKey(NamedTuple):
    """Key by which the index of pending amendments (amendments without a decision) is sorted."""

    timestamp: str
    partition_key: str
    sequence: int


class _ChainItems(NamedTuple):
    """Head and status items of chains, sorted by the chains' scope; ``has_more`` is True if more chains follow."""

    items: list[Item]
    has_more: bool


class CosmosChainOverview:
    """Implementation of ChainOverview: stores the summaries of audit chains in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
        store: store of the audit chains in the same account.
    """

    def __init__(self, account: CosmosAccount, store: CosmosChainStore) -> None:
        self._account = account
        self._store = store
        self._items = {
            target: CosmosItemStore(account, DEFINITIONS[target], "PROVENANCE_UNAVAILABLE", "The audit log")
            for target in Target
        }

    async def list_chains(
        self, target: Target | None, after: ChainKey | None, limit: int, *, broken_only: bool = False
    ) -> Sequence[ChainSummary]:
        found: list[ChainSummary] = []
        list_target = self._list_broken_chains if broken_only else self._list_chains_of_target
        for one in sorted(Target):
            if target not in (None, one) or (after is not None and one < after.target):
                continue
            last = after.scope_key if after is not None and one == after.target else None
            found += await list_target(one, last, limit - len(found))
            if len(found) >= limit:
                break
        return found

    async def find_verdict(self, chain: ChainKey) -> StoredVerdict | None:
        status = await self._items[chain.target].read(items.STATUS_ID, items.compute_partition_key(chain, 1))
        return None if status is None else _find_verdict(status)

    async def count_pending_amendments(self, chain: ChainKey) -> int:
        stored = await self._store.count_records(chain, (_IS_PENDING,))
        return stored - await self._store.count_records(chain, ("IS_DEFINED(c.p.AmendmentID)",))

    async def list_chains_with_incomplete_counts(self, limit: int) -> Sequence[ChainKey]:
        found: dict[ChainKey, None] = {}
        for target in sorted(Target):
            for item in await self._query_items_until(target, _UNCOUNTED, {}, lambda _: False):
                chain = items.chain_key_from_genuine_head_item(target, item)
                # The head item of a full segment keeps its counts; only those of the newest segment matter.
                if chain is not None and chain not in found and not await self._has_complete_counts(chain):
                    found[chain] = None
                if len(found) >= limit:
                    return list(found)
        return list(found)

    async def complete_record_count(self, chain: ChainKey) -> None:
        head = await self._store.find_newest_head(chain)
        if head is None or (head.counts is not None and head.counts.are_complete):
            return
        uncounted = head.tip.sequence if head.counts is None else head.counts.counted_from
        first_at = await self._read_time_of_first_record(chain)
        pending = 0
        if chain.target is Target.DOMAIN_AMENDMENTS:
            pending = await self._index_and_count_pending_amendments(chain, uncounted)
        await self._add_missing_counts(chain, uncounted, first_at, pending)

    async def list_pending_amendments(
        self, after: PendingPlace | None, limit: int, max_bytes: int, *, with_records: bool = True
    ) -> Sequence[PendingEntry]:
        minimum = _SortKey("", "", 0) if after is None else _to_sort_key(after)
        entries: dict[PendingPlace, PendingEntry] = {}
        newest = ""

        def add_entries_and_check_if_page_is_full(item: Item) -> bool:
            nonlocal newest
            # Items with the same time arrive in any order, so all of them are read.
            if len(entries) >= limit and item["pendingAt"] > newest:
                return True
            newest = item["pendingAt"]
            for entry in _pending_entries_from_item(item):
                if _to_sort_key(entry.place) > minimum:
                    entries.setdefault(entry.place, entry)
            return False

        await self._query_items_until(
            Target.DOMAIN_AMENDMENTS, _PENDING, {"@from": minimum.timestamp}, add_entries_and_check_if_page_is_full
        )
        page = [entries[place] for place in sorted(entries, key=_to_sort_key)[:limit]]
        return await self._add_records_to_entries(page, max_bytes) if with_records else page

    async def list_pending_sequences(self, chain: ChainKey, before_sequence: int, limit: int) -> Sequence[int]:
        head = await self._store.find_newest_head(chain)
        found: set[int] = set()
        # The first segment also has the entries of complete_record_count, whose amendments are in any segment.
        for segment in range(1, 1 + (head.segment if head else 1)):
            found |= await self._list_pending_sequences_of_segment(chain, segment, before_sequence, limit)
        return sorted(found, reverse=True)[:limit]

    async def remove_pending_entries(self, entries: Sequence[PendingEntry]) -> None:
        removed: dict[tuple[ChainKey, str], int] = {}
        for entry in entries:
            name = (entry.place.chain, entry.token)
            removed[name] = removed.get(name, 0) + 1
        for (chain, token), count in removed.items():
            partition, _, rest = token.partition("|")
            # A writer to the store can create an item whose id contains the separator.
            item_id, _, size = rest.rpartition("|")
            if count == int(size):
                await self._items[chain.target].delete(item_id, partition)

    async def save_checkpoint_sizes(self, sizes_by_chain: Mapping[ChainKey, int]) -> None:
        for chain, size in sizes_by_chain.items():
            await self._change_status_item(chain, _build_checkpoint_size_update(size))

    async def save_verdict(self, chain: ChainKey, verdict: StoredVerdict, started_at: str) -> None:
        members: Item = {"at": verdict.verified_at, "records": verdict.records, "valid": verdict.is_valid}
        members |= {"brokenAt": verdict.broken_at, "reason": verdict.reason}
        latest = compute_latest_verdict_time(self._account.runtime.now())

        def store_verdict(item: Item) -> Item | NoChange:
            stored = _find_verdict(item)
            is_outdated = verdict.is_valid and stored is not None and started_at < stored.verified_at <= latest
            return None if is_outdated else {**item, "verdict": members}

        await self._change_status_item(chain, store_verdict)

    async def close(self) -> None:
        """Do nothing; the owner of the account closes the account."""

    async def _list_chains_of_target(self, target: Target, after_scope: str | None, limit: int) -> list[ChainSummary]:
        found: list[ChainSummary] = []
        more = True
        while more and len(found) < limit:
            rows, more = await self._read_items_of_next_chains(target, after_scope, limit - len(found))
            for scope, group in groupby(rows, key=lambda item: item["scope"]):
                after_scope = scope
                summary = _summary_from_items_if_valid(target, list(group))
                # A forged head item is not in the partition of its scope, and has no summary.
                if summary is not None:
                    found.append(summary)
        return found

    async def _list_broken_chains(self, target: Target, after_scope: str | None, limit: int) -> list[ChainSummary]:
        text = _BROKEN.format(comparison=">=" if after_scope is None else ">")
        statuses: dict[ChainKey, Item] = {}

        def add_status_and_check_if_page_is_full(status: Item) -> bool:
            chain = ChainKey(target, status["scope"])
            if status["chain"] == items.compute_partition_key(chain, 1):
                statuses[chain] = status
            return len(statuses) >= limit

        await self._query_items_until(target, text, {"@after": after_scope or ""}, add_status_and_check_if_page_is_full)
        found: list[ChainSummary] = []
        for batch in batched(statuses.items(), READS_AT_ONCE, strict=False):
            found += await asyncio.gather(*(self._summarize_broken_chain(chain, status) for chain, status in batch))
        return found

    async def _summarize_broken_chain(self, chain: ChainKey, status_item: Item) -> ChainSummary:
        head = await self._store.find_newest_head(chain)
        if head is None:
            return _build_summary_without_head(chain, status_item)
        return _build_summary(chain, head, status_item)

    async def _read_items_of_next_chains(self, target: Target, after_scope: str | None, limit: int) -> _ChainItems:
        """Read the items of the next ``limit`` chains, sorted by scope.

        Begin after the scope ``after_scope``, or with the first chain if it is None.
        """
        scopes: set[str] = set()

        def is_item_beyond_limit(item: Item) -> bool:
            scopes.add(item["scope"])
            return len(scopes) > limit

        text = _SUMMARIES.format(comparison=">=" if after_scope is None else ">")
        rows = await self._query_items_until(target, text, {"@after": after_scope or ""}, is_item_beyond_limit)
        return _ChainItems(rows, len(scopes) > limit)

    async def _list_pending_sequences_of_segment(
        self, chain: ChainKey, segment_number: int, before_sequence: int, limit: int
    ) -> set[int]:
        """Return the highest sequence numbers below ``before_sequence`` of the pending amendments in one segment.

        The index of pending amendments contains these numbers; an index item can contain several. The items are read
        until there are ``limit`` numbers, so the result can have a few more.
        """
        found: set[int] = set()

        def add_sequences_and_check_if_full(item: Item) -> bool:
            # The id of an item contains its lowest sequence number, so the following items have lower ones.
            if len(found) >= limit:
                return True
            found.update(number for number in _pending_sequences_from_item(item) if number < before_sequence)
            return False

        last = f"{items.PENDING_ID}{format_record_id(before_sequence - 1)}"
        await self._query_items_until(
            chain.target,
            _PENDING_OF_SEGMENT,
            {"@first": items.PENDING_ID, "@last": last},
            add_sequences_and_check_if_full,
            partition_key=items.compute_partition_key(chain, segment_number),
        )
        return found

    async def _query_items_until(
        self,
        target: Target,
        sql: str,
        values: Mapping[str, object],
        must_stop_at: Callable[[Item], bool],
        *,
        partition_key: str | None = None,
    ) -> list[Item]:
        """Run a query over one or all partitions; return its items before the first one at which it must stop.

        Args:
            target: kind of chain, whose container is queried.
            sql: SQL text of the query.
            values: values of the query's parameters by name.
            must_stop_at: returns True for the item at which the query ends; this item is not returned.
            partition_key: the only partition to query; None for all partitions.
        """
        options: dict[str, Any] = {} if partition_key is None else {"partition_key": partition_key}
        usage, retries = self._account.usage, ReadRetries(self._account.usage, self._account.runtime)
        parameters: list[dict[str, object]] = [{"name": name, "value": value} for name, value in values.items()]
        while True:
            found: list[Item] = []
            try:
                container = await self._account.open_container(target)
                rows = query_items(
                    container,
                    sql,
                    parameters=parameters,
                    max_item_count=_PAGE,
                    response_hook=usage.record_reply,
                    **options,
                )
                async with aclosing(rows):
                    async for item in rows:
                        if must_stop_at(item):
                            break
                        found.append(item)
            except (AzureError, OSError, TimeoutError) as error:
                await retries.wait_after_failure(error)
            else:
                return found

    async def _has_complete_counts(self, chain: ChainKey) -> bool:
        head = await self._store.find_newest_head(chain)
        return head is None or (head.counts is not None and head.counts.are_complete)

    async def _read_time_of_first_record(self, chain: ChainKey) -> str:
        """Return the time of a chain's first record; ``-`` if the record or its time is missing."""
        page = await self._store.read(chain, 0, limit=1, max_bytes=1)
        return page.records[0].projection.get("Timestamp", "-") if page.records else "-"

    async def _index_and_count_pending_amendments(self, chain: ChainKey, last_sequence: int) -> int:
        """Add the pending amendments among a chain's first ``last_sequence`` records to the index.

        Return the number of amendments minus the number of decisions, both counted in these records.
        """
        pending, low, more = 0, 1, True
        while more:
            filters = Filters(
                equal={"Status": "pending"}, absent=("AmendmentID",), from_sequence=low, to_sequence=last_sequence
            )
            page = await self._store.scan(chain, filters, newest_first=False, limit=COUNTED_AT_ONCE, max_bytes=_BYTES)
            more = page.more
            if not page.records:
                break
            low = page.records[-1].sequence + 1
            pending += await self._index_and_count_pending_in_page(chain, page.records, last_sequence)
        return pending

    async def _index_and_count_pending_in_page(
        self, chain: ChainKey, records: Sequence[ChainRecord], last_sequence: int
    ) -> int:
        """Add to the index the amendments on this page that have no decision yet.

        Return the number of all amendments on the page, minus the number of their decisions among the chain's first
        ``last_sequence`` records.

        Args:
            chain: chain of the amendments.
            records: amendments that were stored as pending.
            last_sequence: sequence number of the last record whose decisions are subtracted.
        """
        names = {format_record_id(record.sequence): record for record in records}
        decisions = await self._store.find(chain, LookupField.AMENDMENT_ID, list(names))
        decided = {decision.projection["AmendmentID"] for decision in decisions}
        operations: list[Operation] = [
            (
                "upsert",
                (items.build_pending_amendments_item(chain, 1, record.projection["Timestamp"], [record.sequence]),),
                {},
            )
            for name, record in names.items()
            if name not in decided
        ]
        if operations:
            await self._items[chain.target].commit_batch(items.compute_partition_key(chain, 1), operations)
        return len(records) - sum(decision.sequence <= last_sequence for decision in decisions)

    async def _add_missing_counts(
        self, chain: ChainKey, uncounted_records: int, first_record_at: str, pending_amendments: int
    ) -> None:
        """Add the counts of a chain's first records to its head item.

        Earlier versions of the service appended these records without counting them. Retry after concurrent appends.
        Do nothing if another process has counted some of these records meanwhile.

        Args:
            chain: chain whose counts are incomplete.
            uncounted_records: number of the records that are not counted yet.
            first_record_at: time of the chain's first record.
            pending_amendments: number of amendments minus the number of decisions, both counted in these records.
        """
        runtime = self._account.runtime
        deadline = runtime.monotonic() + CHANGE_SECONDS
        while runtime.monotonic() < deadline:
            head = await self._store.find_newest_head(chain)
            if head is None:
                return
            counts = head.counts or HeadCounts("", head.tip.sequence, 0)
            if counts.counted_from != uncounted_records or counts.are_complete:
                return
            try:
                await self._store.replace_counts(
                    chain, head, HeadCounts(first_record_at, 0, counts.pending + pending_amendments)
                )
            except (TipMovedError, OutcomeUnknownError):
                await runtime.sleep(runtime.uniform(0, _LONGEST_WAIT_SECONDS))
            else:
                return
        raise build_unavailable_error()

    async def _add_records_to_entries(self, entries: Sequence[PendingEntry], max_bytes: int) -> list[PendingEntry]:
        """Return the first entries, each with the record of its amendment.

        The records have at most ``max_bytes`` in total; the first one is returned at any size.
        """
        found: list[PendingEntry] = []
        size = 0
        for start in range(0, len(entries), READS_AT_ONCE):
            batch = entries[start : start + READS_AT_ONCE]
            records = await asyncio.gather(*(self._find_record(entry.place) for entry in batch))
            for entry, record in zip(batch, records, strict=True):
                size += len(record.canonical) if record else 0
                if found and size > max_bytes:
                    return found
                found.append(PendingEntry(entry.place, record, entry.token))
        return found

    async def _find_record(self, place: PendingPlace) -> ChainRecord | None:
        page = await self._store.read(place.chain, place.sequence - 1, limit=1, max_bytes=1)
        return next((record for record in page.records if record.sequence == place.sequence), None)

    async def _change_status_item(self, chain: ChainKey, change: Callable[[Item], Item | NoChange]) -> None:
        key = items.compute_partition_key(chain, 1)
        first = {"id": items.STATUS_ID, "chain": key, "append": items.STATUS_ID, "scope": chain.scope_key}
        await self._items[chain.target].change(items.STATUS_ID, key, lambda item: change(item or first))


def _build_checkpoint_size_update(checkpoint_size: int) -> Callable[[Item], Item | NoChange]:
    """Return a function that increases the checkpoint size in a chain's status item to ``checkpoint_size``.

    The function returns the new item, or None if the item's size is not lower than ``checkpoint_size``.
    """
    return lambda item: (
        {**item, "checkpointSize": checkpoint_size} if (_find_checkpoint_size(item) or -1) < checkpoint_size else None
    )


def _to_sort_key(place: PendingPlace) -> _SortKey:
    return _SortKey(place.timestamp, items.compute_partition_key(place.chain, 1), place.sequence)


def _pending_entries_from_item(item: Item) -> list[PendingEntry]:
    """Return the entries of an item of the index of pending amendments; invalid properties count as missing."""
    partition, sequences = item.get("chain"), _pending_sequences_from_item(item)
    if not isinstance(partition, str):
        return []
    token = f"{partition}|{item['id']}|{len(sequences)}"
    scope = str(item.get("scopeKey", ""))
    return [PendingEntry(PendingPlace(item["pendingAt"], scope, sequence), None, token) for sequence in sequences]


def _pending_sequences_from_item(item: Item) -> list[int]:
    """Return the sequence numbers in an item of the index of pending amendments; invalid ones count as missing."""
    numbers = item.get("sequences")
    if not isinstance(numbers, list):
        return []
    return [number for number in numbers if type(number) is int and 0 < number <= items.LAST_SEQUENCE]


def _summary_from_items_if_valid(target: Target, chain_items: Sequence[Item]) -> ChainSummary | None:
    """Build the summary of a chain from its head items and its status item.

    Return None if there is no valid head item and the chain is not known to be broken.
    """
    heads = [item for item in chain_items if item["id"] == items.HEAD_ID]
    found = [(SegmentHead.from_item(item), items.chain_key_from_genuine_head_item(target, item)) for item in heads]
    valid = [(head, chain) for head, chain in found if chain is not None and head.tip.sequence]
    status = next((item for item in chain_items if item["id"] == items.STATUS_ID), {})
    if not valid:
        chain = ChainKey(target, chain_items[0]["scope"])
        verdict = _find_verdict(status)
        is_broken = verdict is not None and not verdict.is_valid
        is_own = status.get("chain") == items.compute_partition_key(chain, 1)
        return _build_summary_without_head(chain, status) if is_broken and is_own else None
    head, chain = max(valid, key=lambda pair: pair[0].segment)
    return _build_summary(chain, head, status)


def _build_summary_without_head(chain: ChainKey, status_item: Item) -> ChainSummary:
    """Build the summary of a broken chain without a head item from its status item."""
    return ChainSummary(
        chain, 0, "", checkpoint_size=_find_checkpoint_size(status_item), verdict=_find_verdict(status_item)
    )


def _build_summary(chain: ChainKey, head: SegmentHead, status_item: Item) -> ChainSummary:
    """Build the summary of a chain from the head of its newest segment and its status item."""
    counts = head.counts
    pending: int | None = None
    if chain.target is not Target.DOMAIN_AMENDMENTS:
        pending = 0
    elif counts is not None and counts.counted_from == 0:
        pending = max(counts.pending, 0)
    return ChainSummary(
        chain,
        head.tip.sequence,
        head.tip.timestamp,
        counts.first_at if counts else "",
        pending,
        _find_checkpoint_size(status_item),
        _find_verdict(status_item),
    )


def _find_checkpoint_size(status_item: Item) -> int | None:
    """Return the checkpoint size in a chain's status item; None if it is missing or not a whole number."""
    size = status_item.get("checkpointSize")
    return size if type(size) is int else None


def _find_verdict(status_item: Item) -> StoredVerdict | None:
    """Return the result of the last verification in a chain's status item; None if it is missing or damaged."""
    properties = status_item.get("verdict")
    if not isinstance(properties, dict):
        return None
    return build_verdict_if_valid(*map(properties.get, ("at", "records", "valid", "brokenAt", "reason")))
