"""Ports of the audit log: the interface for other domains, and the interfaces of its stores."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Target(StrEnum):
    """Containers of audit records. The first two have one chain for the workspace, the others one for each scope."""

    PLATFORM_CONFIG = "PlatformConfig"
    ACCESS_CONTROL = "AccessControl"
    DOMAIN_EVENTS = "DomainEvents"
    DOMAIN_AMENDMENTS = "DomainAmendments"


class AuditLog(Protocol):
    """Port through which other domains append audit events."""

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one event and return after it is stored durably.

        Args:
            target: container of the chain.
            user_id: acting principal, stored as ``UserID``.
            event: ActionType, EntityType, EntityID and optionally NodeID, BeforeState, AfterState, Name, Description.
            append_id: unique for each event; repeating an id returns the record that is already stored.
            scope_key: scope of a domain chain, empty for a workspace chain.

        Returns:
            The stored record, including RecordID, Timestamp, PreviousHash and Hash.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...


class ChainKey(NamedTuple):
    """Key of one chain of the workspace. It is a named tuple, because tuples are fast dictionary keys.

    Attributes:
        target: container of the chain.
        scope_key: scope of a domain chain, any text; empty for a workspace chain.
    """

    target: Target
    scope_key: str = ""


@dataclass(frozen=True, slots=True)
class Tip:
    """Content of a chain's head item: the position and hash of its last record.

    Attributes:
        sequence: sequence of the last record; 0 if the chain is empty.
        hash: ``Hash`` of the last record; empty if the chain is empty.
        timestamp: time of the last record, RFC 3339 in UTC with microseconds; empty if the chain is empty.
        token: opaque token of the store, for instance segment and ETag; empty if the chain has no head item.
    """

    sequence: int = 0
    hash: str = ""
    timestamp: str = ""
    token: str = ""


class ChainRecord(NamedTuple):
    """Record as it is stored. It is a named tuple, because verification creates millions of them.

    Attributes:
        sequence: position in the chain, from 1. It is the key in the store, not a part of ``canonical``.
        canonical: RFC 8785 bytes of the record without ``Hash``.
        hash: lowercase hex SHA-256 of these bytes.
        append_id: unique in its chain; never returned to callers.
        projection: filter fields that the record has, by the names of :data:`PROJECTED`.
    """

    sequence: int
    canonical: bytes
    hash: str
    append_id: str
    projection: Mapping[str, str]


PROJECTED = (
    "Timestamp",
    "UserID",
    "ActionType",
    "EntityType",
    "EntityID",
    "ReasonCategory",
    "Status",
    "AmendmentID",
)
"""Names of the filter fields: members of a record that are stored a second time, for queries.

``UserID`` and ``Timestamp`` are the actor and the time in every kind of record.
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on the records of a chain. A record must meet all of them.

    Attributes:
        equal: filter fields and their required values, compared exactly; without ``Timestamp``.
        absent: filter fields that a record must not have.
        start: earliest ``Timestamp``, inclusive, in the format of records; empty for no limit.
        end: latest ``Timestamp``, inclusive; empty for no limit. Timestamps never decrease along a chain.
        from_sequence: lowest sequence, inclusive; None for no limit.
        to_sequence: highest sequence, inclusive; None for no limit.
    """

    equal: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    from_sequence: int | None = None
    to_sequence: int | None = None


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One page of records in the requested order.

    Attributes:
        records: records of the page.
        more: whether another page follows; if so, this page has at least one record.
        scanned: number of records that the store read, including skipped ones and the one that sets ``more``.
    """

    records: Sequence[ChainRecord]
    more: bool
    scanned: int


class Lookup(StrEnum):
    """Fields by which :meth:`ChainStore.find` finds records."""

    APPEND_ID = "AppendID"
    AMENDMENT_ID = "AmendmentID"


class TipMovedError(Exception):
    """The chain's tip differs from the expected one; nothing was written."""


class OutcomeUnknownError(Exception):
    """It is unknown whether the batch was written. Read the tip and look up the append ids before a retry.

    A store also raises it if the batch may still be written later. The retry expects the same tip, so the store accepts
    only one of the two writes.
    """


class ChainStore(Protocol):
    """Store of chains. Records are never changed; each append also replaces the chain's head item in the same step.

    A read returns every record whose append was acknowledged before the read began. (Cosmos DB: strong consistency, or
    bounded staleness with a single write region.) Scope keys are any text; adapters encode them if ids are restricted.
    A record has up to 1,500,000 canonical bytes, and every such record must fit in a batch. Unless documented
    otherwise, methods raise ``WorkspaceError`` UNAVAILABLE with code ``PROVENANCE_UNAVAILABLE`` if the store does not
    respond and nothing was written.

    Attributes:
        max_batch_records: maximum number of records in one append.
        max_batch_weight: maximum sum of :meth:`weight` in one append, in bytes.
    """

    @property
    def max_batch_records(self) -> int: ...  # noqa: D102

    @property
    def max_batch_weight(self) -> int: ...  # noqa: D102

    def weight(self, canonical: bytes) -> int:
        """Return the maximum number of bytes that a record takes in a batch, including escapes and filter fields."""
        ...

    async def provision(self, chain: ChainKey) -> None:
        """Prepare the store for a chain's first append. This may take long, may be repeated, and creates no head item.

        The appender calls it before each append while the chain is empty.
        """
        ...

    async def tip(self, chain: ChainKey) -> Tip:
        """Return the content of the chain's head item in constant time; ``Tip()`` for an empty chain."""
        ...

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> Tip:
        """Write records and the new head item durably, all or nothing.

        Args:
            chain: chain to append to.
            records: 1 to ``max_batch_records`` records with sequences from ``expected.sequence + 1`` without gap.
            expected: tip from :meth:`tip` or an earlier append of this store; must still be the chain's tip.

        Returns:
            The new tip.

        Raises:
            TipMovedError: if the head item changed, or one of the sequences or append ids exists.
            OutcomeUnknownError: if the request timed out or its connection was lost.
            WorkspaceError: UNAVAILABLE if nothing was written and an immediate retry cannot help.
        """
        ...

    async def read(self, chain: ChainKey, after: int, *, limit: int, max_bytes: int) -> RecordPage:
        """Return records by ascending sequence, exactly as stored, without reading the head item.

        Records with the same sequence, which only forgery creates, are in the same page.

        Args:
            chain: chain to read; for a chain that does not exist, the page is empty.
            after: return records with a higher sequence only.
            limit: maximum number of records, at least 1.
            max_bytes: stop after this number of canonical bytes; the first record is returned at any length.
        """
        ...

    async def hashes(self, chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        """Return the stored ``Hash`` of the next ``limit`` records after the sequence ``after``, in order."""
        ...

    async def scan(
        self,
        chain: ChainKey,
        filters: Filters,
        *,
        newest_first: bool = True,
        offset: int = 0,
        limit: int,
        max_bytes: int,
    ) -> RecordPage:
        """Return matching records in order of sequence.

        Args:
            chain: chain to read; for a chain that does not exist, the page is empty.
            filters: conditions on the records.
            newest_first: descending order, otherwise ascending.
            offset: number of matches to skip.
            limit: maximum number of records, at least 1.
            max_bytes: stop after this number of canonical bytes; the first record is returned at any length. The store
                may also return fewer records than ``limit`` for other reasons; only ``more`` shows whether the end was
                reached. The caller requests the next page with a narrower range of sequences.
        """
        ...

    async def find(self, chain: ChainKey, by: Lookup, values: Sequence[str]) -> Sequence[ChainRecord]:
        """Find records of the whole chain by their append ids or AmendmentIDs, at most 100 values."""
        ...

    def tips(self, changed_from: str = "") -> AsyncIterator[tuple[ChainKey, Tip]]:
        """Yield the chains whose last record is not older than ``changed_from``, with their tips, in any order."""
        ...

    async def close(self) -> None:
        """Finish running operations and close connections."""
        ...


type Row = tuple[int, Any, str, bytes]
"""Record without its append id: sequence, canonical, hash, and the values of :data:`PROJECTED` as a JSON array.

The array has no spaces, null for an absent value, and a number if the stored value is not text.
"""


@runtime_checkable
class RowStreams(Protocol):
    """Optional port of a chain store: passes rows to the verification without creating a record object for each row.

    docs/adr/0027 says why Cosmos DB does not need it.
    """

    async def stream(self, chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        """Pass the rows of a range of sequences to a function outside the event loop. The function may stop early.

        Args:
            chain: chain to read; a chain that does not exist has no rows.
            first: lowest sequence, inclusive.
            last: highest sequence, inclusive. The range is read from one snapshot and in constant memory.
            work: receives the rows by ascending sequence, exactly as stored. It is called again from the first row if
                a row cannot be decoded.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class DecisionLookup(Protocol):
    """Optional port of a chain store: finds decisions about amendments by the content of records.

    docs/adr/0027 says why Cosmos DB cannot have it.
    """

    async def find_decisions(self, chain: ChainKey, amendments: Sequence[str]) -> Sequence[ChainRecord]:
        """Find the records that name one of these amendments, in their content or filter field.

        The records are in any order; a record may be returned twice.

        Args:
            chain: a scope's chain of amendments.
            amendments: RecordIDs of the amendments, at most 100.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class MisplacedRecords(Protocol):
    """Optional port of a chain store that can contain misplaced records.

    A misplaced record is a forged record that is stored at an invalid sequence: a fraction, zero, a negative number or
    text. No other method returns it. Appends are rejected while such a record is past the end or before the first
    record.
    docs/adr/0027 says why Cosmos DB does not need it.
    """

    async def find_misplaced(self, chain: ChainKey) -> int | None:
        """Find the first misplaced record and return the next valid sequence after it; None if there is none.

        Args:
            chain: chain to search; a chain that does not exist has no records.

        Returns:
            A sequence, at least 1. If the misplaced record sorts after all others, it is past the highest valid one.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class OrphanRecords(Protocol):
    """Optional port of a chain store: finds orphans, records that cannot be reached through a head item.

    docs/adr/0027 says why Cosmos DB does not need it.
    """

    async def list_orphans(self, chain: ChainKey, genesis: str) -> Sequence[ChainRecord]:
        """Return up to 100 records that may belong to this chain but cannot be reached through its head item.

        These are the records that contain the chain's genesis hash. If the chain has no head item, records are included
        that belong to no head item and are not the first record of a chain: only their content can show their chain.

        Args:
            chain: chain to search. If it has a head item, only records without a head item are returned.
            genesis: genesis hash of the chain.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...
