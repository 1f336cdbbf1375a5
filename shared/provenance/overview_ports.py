"""Port of the overview of all audit chains: their sizes, pending amendments and last verifications."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from shared.provenance.hash_rule import is_record_time
from shared.provenance.ports import ChainKey, ChainRecord, Target
from shared.timestamps import LONGEST_SETBACK, format_rfc3339


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """Result of the last complete verification of a chain, by a request, for an audit bundle or in the background.

    Attributes:
        verified_at: time of the verification, RFC 3339 in UTC with microseconds. For a broken chain, the end of the
            verification. For a valid chain, the start of a verification by a request or for a bundle, and the end of a
            background verification. Exception: the start, if a new period of the background verification began
            meanwhile, so that the chain is still due in the new period.
        records: number of records in the chain at that time.
        is_valid: whether the whole chain was valid.
        broken_at: RecordID, Hash or checkpoint name of the first fault; empty for a valid chain.
        reason: description of the result.
    """

    verified_at: str
    records: int
    is_valid: bool
    broken_at: str = ""
    reason: str = ""


def build_verdict_if_valid(
    verified_at: object, record_count: object, is_valid: object, broken_at: object, reason: object
) -> StoredVerdict | None:
    """Build a verdict from stored values; return None if one is missing, has a wrong type or is an invalid time.

    A writer to the store can edit a verdict. An edited verdict must not prevent the next verification.
    """
    if (
        isinstance(verified_at, str)
        and is_record_time(verified_at)
        and type(record_count) is int
        and type(is_valid) is bool
        and isinstance(broken_at, str)
        and isinstance(reason, str)
    ):
        return StoredVerdict(verified_at, record_count, is_valid, broken_at, reason)
    return None


def compute_latest_verdict_time(now: datetime) -> str:
    """Return the latest plausible time of a stored verdict: the current time plus the longest setback of a clock.

    A stored verdict with a later time was edited, or stored by a host whose clock was ahead. Callers ignore such a
    verdict. Otherwise, the chain would not be verified, and its verdict not replaced, until the clocks reach that time.

    Args:
        now: the current time.
    """
    return format_rfc3339(now + LONGEST_SETBACK)


@dataclass(frozen=True, slots=True)
class ChainSummary:
    """Summary of a chain; the store returns it without reading the chain's records.

    Attributes:
        chain: key of the chain.
        records: number of records.
        last_at: time of the last record.
        first_at: time of the first record; empty if the time must be read from the first record.
        pending: number of pending amendments; None if they are not counted yet.
        checkpoint_size: number of records that the newest checkpoint covers; None if it is not stored yet.
        verdict: result of the last complete verification; None if there was none.
    """

    chain: ChainKey
    records: int
    last_at: str
    first_at: str = ""
    pending: int | None = 0
    checkpoint_size: int | None = None
    verdict: StoredVerdict | None = None


class PendingPlace(NamedTuple):
    """Position of an amendment in the list of all pending amendments; the list is sorted by these attributes.

    Attributes:
        timestamp: time of the amendment.
        scope_key: scope of the amendment.
        sequence: sequence number of the amendment in the scope's chain of amendments.
    """

    timestamp: str
    scope_key: str
    sequence: int

    @property
    def chain(self) -> ChainKey:
        """Key of the chain that contains the amendment."""
        return ChainKey(Target.DOMAIN_AMENDMENTS, self.scope_key)


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """Entry of the index of pending amendments. The amendment may have been decided meanwhile.

    Attributes:
        place: position of the amendment in the list.
        record: the amendment as it is stored; None if the store does not contain it, or if it was not read.
        token: opaque token of the store, for :meth:`ChainOverview.remove_pending_entries`.
    """

    place: PendingPlace
    record: ChainRecord | None
    token: str = ""


class ChainOverview(Protocol):
    """Store of the summaries of all chains, and of the index of pending amendments.

    The transaction of an append updates both. Chains that an earlier version of the service wrote are counted later by
    :meth:`complete_record_count`, which can run in several processes at once and during appends. All methods raise
    ``WorkspaceError`` UNAVAILABLE with code ``PROVENANCE_UNAVAILABLE`` if the store does not respond.
    """

    async def list_chains(
        self, target: Target | None, after: ChainKey | None, limit: int, *, broken_only: bool = False
    ) -> Sequence[ChainSummary]:
        """Return the summaries of the chains that have records, ordered by target and scope as the store compares them.

        A chain without a head item (which states its last record) is returned if its last complete verification found
        a fault: its records or its head item were deleted. Its summary has 0 records.

        Args:
            target: return only chains of this container; None for the chains of all containers.
            after: return only chains after this chain; None to begin with the first chain.
            limit: maximum number of summaries.
            broken_only: True to return only chains whose last complete verification found a fault; the store finds
                them by an index.
        """
        ...

    async def find_verdict(self, chain: ChainKey) -> StoredVerdict | None:
        """Return the result of a chain's last complete verification; None if there was none."""
        ...

    async def count_pending_amendments(self, chain: ChainKey) -> int:
        """Count the pending amendments of a chain among its records; needed while its summary contains no count."""
        ...

    async def list_chains_with_incomplete_counts(self, limit: int) -> Sequence[ChainKey]:
        """Return up to ``limit`` chains with records that are not counted yet, because an earlier version wrote them.

        Use ``limit`` 1 to check whether such a chain exists.
        """
        ...

    async def complete_record_count(self, chain: ChainKey) -> None:
        """Count the records of a chain that an earlier version of the service wrote, and index its pending amendments.

        The work can be repeated after an interruption: no count is lost, and no record is counted twice.
        """
        ...

    async def list_pending_amendments(
        self, after: PendingPlace | None, limit: int, max_bytes: int, *, with_records: bool = True
    ) -> Sequence[PendingEntry]:
        """Return entries of the index of pending amendments, oldest first.

        Each pending amendment has an entry, except in a chain whose records are not counted yet
        (:meth:`complete_record_count`). Some amendments with an entry are already decided.

        Args:
            after: return only entries after this position; None to begin with the oldest.
            limit: maximum number of entries.
            max_bytes: maximum total size of the amendments; the first entry is returned at any size.
            with_records: False to return the entries without their amendments, which are then not read.
        """
        ...

    async def list_pending_sequences(self, chain: ChainKey, before_sequence: int, limit: int) -> Sequence[int]:
        """Return the sequence numbers of a scope's entries in the index of pending amendments, newest first.

        The index contains each pending amendment, except those of a chain whose records are not counted yet
        (:meth:`complete_record_count`). Some amendments in the index are already decided.

        Args:
            chain: key of the scope's chain of amendments.
            before_sequence: return only sequence numbers below this one.
            limit: maximum number of sequence numbers.
        """
        ...

    async def remove_pending_entries(self, entries: Sequence[PendingEntry]) -> None:
        """Remove entries from the index of pending amendments, because their amendments are decided."""
        ...

    async def save_checkpoint_sizes(self, sizes_by_chain: Mapping[ChainKey, int]) -> None:
        """Store the number of records that each chain's newest checkpoint covers; a stored number never decreases."""
        ...

    async def save_verdict(self, chain: ChainKey, verdict: StoredVerdict, started_at: str) -> None:
        """Store the result of a verification, and replace the earlier result.

        A valid result does not replace the result of a verification that ended after ``started_at``. Exception: the
        time of that result is implausibly far in the future (:func:`compute_latest_verdict_time`), so it was edited or
        stored with a wrong clock.

        Args:
            chain: key of the verified chain.
            verdict: result of the verification.
            started_at: start of the verification, RFC 3339 in UTC with microseconds.
        """
        ...

    async def close(self) -> None:
        """Finish running operations and close the connections of the store."""
        ...


def is_pending_amendment(record: ChainRecord) -> bool:
    """Return whether a record is an amendment that was stored as pending; it may have been decided since."""
    return record.projection.get("Status") == "pending" and "AmendmentID" not in record.projection
