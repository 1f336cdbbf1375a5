"""Overview of the whole audit log: all chains with their record counts, and all pending amendments."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.provenance.amendments import AmendmentState
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.decisions import has_metadata_matching_content, map_indexed_decisions_by_amendment
from shared.provenance.hash_rule import format_record_id, is_record_time
from shared.provenance.overview_ports import (
    ChainOverview,
    ChainSummary,
    PendingEntry,
    PendingPlace,
    is_pending_amendment,
)
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Target
from shared.provenance.queries import (
    MAX_BODY_BYTES,
    AmendmentFilters,
    AuditQueryResult,
    build_query_result,
    query_amendments,
)
from shared.runtime import SYSTEM_RUNTIME, Runtime

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
COUNT_SECONDS: Final = 20.0
"""Seconds for which a request for pending amendments may count chains that an earlier version wrote."""
CHECK_SECONDS: Final = 60.0
"""Seconds for which a process assumes that all chains are counted, after it has found no uncounted chain."""
_READS_AT_ONCE: Final = 16
_CHAINS_AT_ONCE: Final = 100
_LOG = get_logger("provenance")


@dataclass(frozen=True, slots=True)
class SummaryPage:
    """Page of chain summaries.

    Attributes:
        summaries: complete summaries of the chains, with all counts.
        has_more: whether more chains follow.
    """

    summaries: Sequence[ChainSummary]
    has_more: bool


@dataclass(frozen=True, slots=True)
class PendingPage:
    """Page of pending amendments.

    Attributes:
        result: amendments of the page, oldest first.
        places: position of each amendment in the list of all pending amendments.
        has_more: whether more pending amendments can follow.
    """

    result: AuditQueryResult
    places: Sequence[PendingPlace]
    has_more: bool


class AuditOverview:
    """Lists all audit chains and all pending amendments of the workspace.

    Args:
        index: store of the chains' summaries and of the index of pending amendments.
        store: store of the chains.
        checkpoints: reads signed checkpoints.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, index: ChainOverview, store: ChainStore, checkpoints: Checkpoints, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._index = index
        self._store = store
        self._checkpoints = checkpoints
        self._checked_at = -CHECK_SECONDS
        self._counting = asyncio.Lock()
        self._runtime = runtime

    async def list_chains(
        self, target: Target | None, after: ChainKey | None, limit: int, *, broken_only: bool = False
    ) -> SummaryPage:
        """Return summaries of the chains that have records, ordered by target (kind of chain) and scope.

        Args:
            target: return only chains of this target; None for the chains of all targets.
            after: key of the last chain on the previous page; None for the first page.
            limit: maximum number of summaries.
            broken_only: True to return only chains whose last complete verification found a fault.
        """
        found = await self._index.list_chains(target, after, limit + 1, broken_only=broken_only)
        places = asyncio.Semaphore(_READS_AT_ONCE)

        async def complete_summary_if_incomplete(summary: ChainSummary) -> ChainSummary:
            if summary.first_at and summary.pending is not None and summary.checkpoint_size is not None:
                return summary
            async with places:
                return await self._complete_summary(summary)

        summaries = await asyncio.gather(*map(complete_summary_if_incomplete, found[:limit]))
        await self._save_checkpoint_sizes(found, summaries)
        return SummaryPage(summaries, len(found) > limit)

    async def list_pending_amendments(self, after: PendingPlace | None, limit: int) -> PendingPage:
        """Return the pending amendments of all audit chains, oldest first.

        Args:
            after: position of the last amendment on the previous page; None for the first page.
            limit: maximum number of amendments.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if the store does not respond, or while the
                amendments that an earlier version of the service wrote are still being counted.
        """
        await self._ensure_complete_counts()
        found: list[PendingEntry] = []
        more, size = True, 0
        while more and len(found) <= limit and size <= MAX_BODY_BYTES:
            entries = await self._index.list_pending_amendments(after, max(limit + 1, DEFAULT_LIMIT), MAX_BODY_BYTES)
            more = bool(entries)
            after = entries[-1].place if entries else after
            pending = await self._drop_decided_entries(entries)
            found += pending
            size += sum(len(one.record.canonical) for one in pending if one.record)
        page = _select_entries_that_fit_in_reply(found[:limit])
        records = [entry.record for entry in page if entry.record is not None]
        has_more = len(found) > len(page) or more
        result = await build_query_result(records, len(found), has_more=has_more, runtime=self._runtime)
        return PendingPage(result, [entry.place for entry in page], has_more and bool(page))

    async def query_amendments(
        self, chain: ChainKey, amendment_filters: AmendmentFilters, *, limit: int, offset: int
    ) -> AuditQueryResult:
        """Return the amendments and decisions of a scope that match filters, newest first.

        Arguments: see :func:`~shared.provenance.queries.query_amendments`.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond. If the filter requires the status pending, the
                error is also raised while the amendments that an earlier version of the service wrote are still being
                counted.
        """
        if amendment_filters.status is AmendmentState.PENDING:
            await self._ensure_complete_count(chain)
        return await query_amendments(
            self._store, self._index, chain, amendment_filters, limit=limit, offset=offset, runtime=self._runtime
        )

    async def complete_record_counts(self) -> int:
        """Count the records of chains that an earlier version of the service wrote.

        Also remove decided amendments from the index of pending amendments.

        Returns:
            The number of chains whose records were counted.
        """
        counted: set[ChainKey] = set()
        # A chain that is listed again was changed meanwhile; the next run counts it.
        while new := set(await self._index.list_chains_with_incomplete_counts(_CHAINS_AT_ONCE)) - counted:
            for chain in new:
                await self._index.complete_record_count(chain)
            counted |= new
        after: PendingPlace | None = None
        while entries := await self._index.list_pending_amendments(
            after, MAX_LIMIT, MAX_BODY_BYTES, with_records=False
        ):
            await self._drop_decided_entries(entries)
            after = entries[-1].place
        return len(counted)

    async def _ensure_complete_count(self, chain: ChainKey) -> None:
        """Count the pending amendments of a chain if an earlier version of the service wrote its records.

        If the list of uncounted chains is cut off, all of them are counted, because this chain can be missing in the
        list.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE``, as :meth:`_ensure_complete_counts`.
        """
        if self._runtime.monotonic() < self._checked_at + CHECK_SECONDS:
            return
        incomplete = await self._index.list_chains_with_incomplete_counts(_CHAINS_AT_ONCE)
        if chain in incomplete:
            await self._index.complete_record_count(chain)
        elif len(incomplete) == _CHAINS_AT_ONCE:
            # This chain can be one of those that are not listed.
            await self._ensure_complete_counts()

    async def _ensure_complete_counts(self) -> None:
        """Count the records of all chains that an earlier version of the service wrote.

        The index of pending amendments then contains the pending amendments of these chains.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_UNAVAILABLE`` if this takes longer than :data:`COUNT_SECONDS`.
        """
        if self._runtime.monotonic() < self._checked_at + CHECK_SECONDS:
            return
        deadline = self._runtime.monotonic() + COUNT_SECONDS
        async with self._counting:
            while chains := await self._index.list_chains_with_incomplete_counts(1):
                if self._runtime.monotonic() > deadline:
                    detail = (
                        "The amendments that an earlier version of the service stored are still being counted; "
                        "retry after the stated time."
                    )
                    raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail, retryAfter=10)
                await self._index.complete_record_count(chains[0])
            self._checked_at = self._runtime.monotonic()

    async def _drop_decided_entries(self, entries: Sequence[PendingEntry]) -> list[PendingEntry]:
        """Return the entries whose amendments are still pending; remove entries of decided amendments from the index.

        Entries whose record is missing or is no pending amendment are not returned either. The index contains such
        entries after records were removed from the end of a chain.
        """
        by_chain: dict[ChainKey, list[str]] = {}
        for entry in entries:
            by_chain.setdefault(entry.place.chain, []).append(format_record_id(entry.place.sequence))
        places = asyncio.Semaphore(_READS_AT_ONCE)

        async def find_decided_amendments(chain: ChainKey, amendment_ids: list[str]) -> set[tuple[ChainKey, str]]:
            async with places:
                found = await map_indexed_decisions_by_amendment(
                    self._store, chain, amendment_ids, runtime=self._runtime
                )
            return {(chain, amendment) for amendment in found}

        groups = await asyncio.gather(*(find_decided_amendments(chain, names) for chain, names in by_chain.items()))
        decided = set().union(*groups)
        stale = [one for one in entries if (one.place.chain, format_record_id(one.place.sequence)) in decided]
        if stale:
            await self._try_to_remove_entries_of_decided_amendments(stale)
        removed = {one.place for one in stale}
        return [
            one
            for one in entries
            if one.record is not None and not _is_certainly_not_pending(one.record) and one.place not in removed
        ]

    async def _save_checkpoint_sizes(
        self, stored_summaries: Sequence[ChainSummary], completed_summaries: Sequence[ChainSummary]
    ) -> None:
        """Store the sizes of newest checkpoints that were missing in the stored summaries of chains.

        The size is the number of records that a checkpoint covers. Later requests then need not search for it.
        """
        missing = {one.chain for one in stored_summaries if one.checkpoint_size is None}
        sizes = {one.chain: one.checkpoint_size or 0 for one in completed_summaries if one.chain in missing}
        try:
            await self._index.save_checkpoint_sizes(sizes)
        except WorkspaceError as error:
            _LOG.warning("sizes of checkpoints were not stored", extra=fields(cause=str(error)))

    async def _try_to_remove_entries_of_decided_amendments(self, entries: Sequence[PendingEntry]) -> None:
        try:
            await self._index.remove_pending_entries(entries)
        except WorkspaceError as error:
            # The reply is correct without it, and the next request tries it again.
            _LOG.warning("decided amendments were not removed from their index", extra=fields(cause=str(error)))

    async def _complete_summary(self, summary: ChainSummary) -> ChainSummary:
        """Return a chain's summary with the number of pending amendments, checkpoint size and time of the first record.

        They are missing in a summary that an earlier version of the service stored.
        """
        chain, pending, size, first_at = summary.chain, summary.pending, summary.checkpoint_size, summary.first_at
        if pending is None:
            pending = await self._index.count_pending_amendments(chain)
        if size is None:
            size = await self._checkpoints.count_covered_records(chain)
        if not first_at:
            page = await self._store.read(chain, 0, limit=1, max_bytes=1)
            first_at = page.records[0].projection.get("Timestamp", "") if page.records else ""
        return ChainSummary(chain, summary.records, summary.last_at, first_at, pending, size, summary.verdict)


def chain_summary_to_json(summary: ChainSummary) -> dict[str, Any]:
    """Convert the summary of an audit chain to its JSON object in replies."""
    verdict = summary.verdict
    return {
        "scopeKey": summary.chain.scope_key or None,
        "target": str(summary.chain.target),
        "records": summary.records,
        "firstAt": summary.first_at if is_record_time(summary.first_at) else None,
        "lastAt": summary.last_at if is_record_time(summary.last_at) else None,
        "lastRecordID": format_record_id(summary.records) if summary.records else None,
        "checkpointSize": summary.checkpoint_size or 0,
        "pendingAmendments": summary.pending or 0,
        "lastVerifiedAt": verdict.verified_at if verdict else None,
        "lastVerdict": None if verdict is None else "valid" if verdict.is_valid else "broken",
    }


def _select_entries_that_fit_in_reply(entries: Sequence[PendingEntry]) -> Sequence[PendingEntry]:
    """Return the first pending amendments that fit into one HTTP reply together; at least one."""
    size = 0
    for position, entry in enumerate(entries):
        size += len(entry.record.canonical) if entry.record else 0
        if position and size > MAX_BODY_BYTES:
            return entries[:position]
    return entries


def _is_certainly_not_pending(record: ChainRecord) -> bool:
    """Return True if a record is not a pending amendment, and its Hash and filter fields match its content.

    If the filter fields (copies of properties for queries) were edited, they prove nothing, and the result is False.
    """
    return not is_pending_amendment(record) and has_metadata_matching_content(record)
