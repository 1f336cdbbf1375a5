"""Ports of the audit log: the interface for other domains, and the interfaces of its stores."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Target(StrEnum):
    """Containers of audit records. The first two hold one chain of the workspace, the others one chain per scope."""

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
    """Identity of one chain of the workspace. It is a tuple because each append looks its chain up.

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
        token: opaque token of the store, for instance segment and ETag; empty if there is no head item.
    """

    sequence: int = 0
    hash: str = ""
    timestamp: str = ""
    token: str = ""


class ChainRecord(NamedTuple):
    """A record as stored. It is a tuple because verification creates millions of them.

    Attributes:
        sequence: position in the chain, from 1. It is the store's key and does not depend on ``canonical``.
        canonical: RFC 8785 bytes of the record without ``Hash``.
        hash: lowercase hex SHA-256 of these bytes.
        append_id: unique in its chain; never returned to callers.
        projection: filter fields by the names of :data:`PROJECTED`, without absent ones.
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
"""Names of the filter fields. ``UserID`` and ``Timestamp`` hold the actor and the time of every kind of record."""


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
        more: whether further matches follow; a page with further matches has at least one record.
        scanned: number of records that the store read, including skipped ones and the one that sets ``more``.
    """

    records: Sequence[ChainRecord]
    more: bool
    scanned: int


class Lookup(StrEnum):
    """Keys by which :meth:`ChainStore.find` finds records."""

    APPEND_ID = "AppendID"
    AMENDMENT_ID = "AmendmentID"


class TipMovedError(Exception):
    """The chain's tip differs from the expected one; nothing was written."""


class OutcomeUnknownError(Exception):
    """The store cannot say if the batch was written. Read the tip and look up the append ids before a retry.

    A store also raises it if the batch may still be written later. The retry has the same expected tip, so the store
    rejects one of both.
    """


class ChainStore(Protocol):
    """Store of chains: create-only records, and one head item per chain that is replaced together with them.

    A read returns every append that was acknowledged before the read began (in Cosmos DB: strong consistency or
    bounded staleness with a single write region). Scope keys are any text; adapters encode them where ids are limited.
    A record has up to 1,500,000 canonical bytes, and the weight of each of them must fit in a batch. Unless documented
    otherwise, methods raise ``WorkspaceError`` UNAVAILABLE with code ``PROVENANCE_UNAVAILABLE`` if the store does not
    respond; nothing was written then.

    Attributes:
        max_batch_records: maximum number of records in one append.
        max_batch_weight: maximum sum of :meth:`weight` in one append, in bytes.
    """

    @property
    def max_batch_records(self) -> int: ...  # noqa: D102

    @property
    def max_batch_weight(self) -> int: ...  # noqa: D102

    def weight(self, canonical: bytes) -> int:
        """Return an upper bound of the bytes that a record takes in a batch, including escapes and filter fields."""
        ...

    async def provision(self, chain: ChainKey) -> None:
        """Prepare the store for the first append of a chain. It may take long, is idempotent, and creates no head item.

        The appender calls it before an append while the tip's sequence is 0.
        """
        ...

    async def tip(self, chain: ChainKey) -> Tip:
        """Return the content of the head item in constant time; ``Tip()`` for an empty chain."""
        ...

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> Tip:
        """Write records and their new head item durably, all or nothing.

        Args:
            chain: chain to append to.
            records: 1 to ``max_batch_records`` records with sequences from ``expected.sequence + 1`` without gap.
            expected: tip from :meth:`tip` or an earlier append of this store; must still be the chain's tip.

        Returns:
            The new tip.

        Raises:
            TipMovedError: if the head item changed, or one of the sequences or append ids exists.
            OutcomeUnknownError: if a timeout or dropped connection follows the request.
            WorkspaceError: UNAVAILABLE if nothing was written and an immediate retry is pointless.
        """
        ...

    async def read(self, chain: ChainKey, after: int, *, limit: int, max_bytes: int) -> RecordPage:
        """Return records by ascending sequence, exactly as stored, without reading the head item.

        Records with the same sequence, which only forgery creates, are in the same page.

        Args:
            chain: chain to read; an empty page for an unknown one.
            after: return records with a higher sequence only.
            limit: maximum number of records, at least 1.
            max_bytes: stop after this number of canonical bytes; the first record is returned at any length.
        """
        ...

    async def hashes(self, chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        """Return the stored ``Hash`` of up to ``limit`` records with a higher sequence than ``after``, ascending."""
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
            chain: chain to read; an empty page for an unknown one.
            filters: conditions on the records.
            newest_first: descending order, otherwise ascending.
            offset: number of matches to skip.
            limit: maximum number of records, at least 1.
            max_bytes: stop after this number of canonical bytes; the first record is returned at any length. The store
                may also return fewer records than ``limit`` for its own reasons: only ``more`` shows if the end was
                reached. The caller requests the next page with a narrower range of sequences.
        """
        ...

    async def find(self, chain: ChainKey, by: Lookup, values: Sequence[str]) -> Sequence[ChainRecord]:
        """Return the records of the whole chain that have one of at most 100 append ids or AmendmentIDs."""
        ...

    def tips(self, changed_from: str = "") -> AsyncIterator[tuple[ChainKey, Tip]]:
        """Yield each chain whose last record has the timestamp ``changed_from`` or a later one, in any order."""
        ...

    async def close(self) -> None:
        """Finish running operations and close connections."""
        ...


type Row = tuple[int, Any, str, bytes]
"""A record without its append id: sequence, canonical, hash, and the values of :data:`PROJECTED` as a JSON array.

The array has no spaces, null for an absent value, and a number if the stored value is not text.
"""


@runtime_checkable
class RowStreams(Protocol):
    """Optional port of a chain store: streams rows to verification without creating a record for each.

    docs/adr/0027 says why Cosmos DB does not need it.
    """

    async def stream(self, chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        """Pass the rows of a window to a function that runs outside the event loop and may stop early.

        Args:
            chain: chain to read; no rows for an unknown one.
            first: lowest sequence, inclusive.
            last: highest sequence, inclusive. The window is read consistently and in constant memory.
            work: receives the rows by ascending sequence, exactly as stored. It is called again from the first row if
                a row turns out to be unreadable.

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
        """Return the records about amendments, found by content or filter field, in any order and possibly repeated.

        Args:
            chain: a scope's chain of amendments.
            amendments: at most 100 RecordIDs of amendments.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class MisplacedRecords(Protocol):
    """Optional port of a chain store that can hold forged records at invalid sequences: fractions, zero, text.

    No other method returns them. An append is rejected while such a record is past the end or before the first record.
    docs/adr/0027 says why Cosmos DB does not need it.
    """

    async def find_misplaced(self, chain: ChainKey) -> int | None:
        """Return the sequence that follows the first misplaced record, or None.

        Args:
            chain: chain to search; None for an unknown one.

        Returns:
            A sequence from 1; beyond the highest possible sequence for a record that sorts after all others.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class OrphanRecords(Protocol):
    """Optional port of a chain store whose records can only be found through the head item.

    docs/adr/0027 says why Cosmos DB does not need it.
    """

    async def list_orphans(self, chain: ChainKey, genesis: str) -> Sequence[ChainRecord]:
        """Return up to 100 records that may be the earliest of this chain but cannot be reached through its head item.

        These are the records with its genesis hash. For a chain without a head item, records without any head item
        that are not the first record of a chain are included, since only their content may show their chain.

        Args:
            chain: chain to search. If it has a head item, only records without a head item are returned.
            genesis: its genesis hash.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...
