"""Ports of the audit log: the interface for other domains, and the interfaces of its stores."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Target(StrEnum):
    """Kinds of audit chains; each kind is stored in its own container.

    The first two kinds have one chain for the whole workspace. All other kinds have one chain for each scope, such as a
    production line.
    """

    PLATFORM_CONFIG = "PlatformConfig"
    ACCESS_CONTROL = "AccessControl"
    DOMAIN_EVENTS = "DomainEvents"
    DOMAIN_AMENDMENTS = "DomainAmendments"


class ServiceUser(StrEnum):
    """Users (``UserID``) of audit events about actions of the service itself; new members cannot have these ids."""

    APPLY = "apply"
    """The command that applies a workspace document, if it is called without a member."""
    LOCAL_HOST = "local-host"
    """The first start of the local host."""
    OAUTH = "oauth"
    """The authorization server, if it ends a consent itself or refuses requests of a client."""
    SYSTEM = "system"
    """The worker that disables failing webhooks."""


class AuditLog(Protocol):
    """Port through which other domains append audit events."""

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one audit event and return after it is stored durably.

        Args:
            target: kind (container) of the chain.
            user_id: principal who caused the event, stored as ``UserID``.
            event: ActionType, EntityType, EntityID and optionally NodeID, BeforeState, AfterState, Name, Description.
            append_id: id of the append, unique for each event; a repeated call with the same id returns the record that
                is already stored.
            scope_key: scope of a domain chain; empty for a workspace chain.

        Returns:
            The stored record, including RecordID, Timestamp, PreviousHash and Hash.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        ...


class ChainKey(NamedTuple):
    """Key of one audit chain of the workspace. It is a named tuple, because tuples are fast dictionary keys.

    Attributes:
        target: kind (container) of the chain.
        scope_key: scope of a domain chain, any text; empty for a workspace chain.
    """

    target: Target
    scope_key: str = ""


@dataclass(frozen=True, slots=True)
class Tip:
    """Tip of an audit chain, stored in the chain's head item: number, hash and time of the chain's last record.

    Attributes:
        sequence: sequence number of the last record; 0 if the chain is empty.
        hash: ``Hash`` of the last record; empty if the chain is empty.
        timestamp: time of the last record, RFC 3339 in UTC with microseconds; empty if the chain is empty.
        token: opaque token of the store, for instance segment and ETag; empty if the chain has no head item.
        states_other_scope: True if the head item was edited and states another scope than that of its chain, so that
            lists omit the chain.
    """

    sequence: int = 0
    hash: str = ""
    timestamp: str = ""
    token: str = ""
    states_other_scope: bool = False


class ChainRecord(NamedTuple):
    """Audit record as it is stored; a named tuple, because verification creates millions of records.

    Attributes:
        sequence: position in the chain, from 1. It is the key in the store, not a part of ``canonical``.
        canonical: canonical JSON (RFC 8785) of the record without ``Hash``.
        hash: SHA-256 of ``canonical`` as lowercase hex digits.
        append_id: id of the append, unique in its chain; detects repeated appends; never returned to callers.
        projection: filter fields: copies of the record's properties in :data:`PROJECTED`, by which queries filter.
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
"""Names of the filter fields: properties of a record that are stored a second time, for queries.

``UserID`` and ``Timestamp`` are the actor and the time in every kind of record.
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a query for the records of a chain; a record must satisfy all of them.

    Attributes:
        equal: filter fields (copies of record properties) and their required values, compared exactly; not
            ``Timestamp``.
        absent: filter fields that a record must not have.
        start: earliest ``Timestamp``, inclusive, in the format of records; empty for no limit.
        end: latest ``Timestamp``, inclusive; empty for no limit. Timestamps never decrease along a chain.
        from_sequence: lowest sequence number, inclusive; None for no limit.
        to_sequence: highest sequence number, inclusive; None for no limit.
        sequences: 1 to 1,000 sequence numbers, of which a record must have one; None for no limit.
    """

    equal: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    from_sequence: int | None = None
    to_sequence: int | None = None
    sequences: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One page of records in the requested order.

    Attributes:
        records: records of the page.
        more: whether another page follows; if so, this page has at least one record.
        scanned: number of records that the store read, including skipped ones and the first one of the next page.
    """

    records: Sequence[ChainRecord]
    more: bool
    scanned: int


class LookupField(StrEnum):
    """Field by which :meth:`ChainStore.find` searches: a record's append id, or the amendment that a record decides."""

    APPEND_ID = "AppendID"
    AMENDMENT_ID = "AmendmentID"


class TipMovedError(Exception):
    """Raised if another writer has appended, so that the chain's last record (tip) is not the expected one.

    Nothing was written.
    """


class OutcomeUnknownError(Exception):
    """Raised if it is unknown whether records were written.

    Read the chain's tip and search for the append ids before a retry. A store also raises this error if the batch may
    still be written later. The retry expects the same tip, so the store accepts only one of the two writes.
    """


class ChainStore(Protocol):
    """Store of audit chains. Records never change.

    An append also replaces the chain's head item, which states the last record, in the same transaction.

    A read returns every record whose append was acknowledged before the read began. (Cosmos DB: strong consistency, or
    bounded staleness with a single write region.) Scope keys are any text; adapters encode them if ids are restricted.
    A record has up to 1,500,000 canonical bytes, and every such record must fit in a batch. Unless documented
    otherwise, methods raise ``WorkspaceError`` UNAVAILABLE with code ``PROVENANCE_UNAVAILABLE`` if the store does not
    respond and nothing was written.

    Attributes:
        max_batch_records: maximum number of records in one append.
        max_batch_bytes: maximum sum of :meth:`measure_bytes_in_batch` in one append, in bytes.
    """

    @property
    def max_batch_records(self) -> int: ...  # noqa: D102

    @property
    def max_batch_bytes(self) -> int: ...  # noqa: D102

    def measure_bytes_in_batch(self, canonical_json: bytes) -> int:
        """Return an upper bound of the bytes that a record adds to the request of an append.

        The bound includes escape characters and the record's filter fields.
        """
        ...

    async def provision(self, chain: ChainKey) -> None:
        """Prepare the store for a chain's first append; this can take long, and can be repeated.

        It stores no record and no head item. The appender calls this method before each append while the chain is
        empty.
        """
        ...

    async def read_tip(self, chain: ChainKey) -> Tip:
        """Return the tip of the chain (number and hash of its last record) in constant time; ``Tip()`` if empty."""
        ...

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected_tip: Tip) -> Tip:
        """Write records, and the head item that states the new last record, durably: all or nothing.

        Args:
            chain: chain to append to.
            records: 1 to ``max_batch_records`` records, numbered from ``expected_tip.sequence + 1`` without a gap.
            expected_tip: tip from :meth:`read_tip` or an earlier append of this store; must still be the chain's tip.

        Returns:
            The new tip.

        Raises:
            TipMovedError: the chain's tip has changed, or a record with one of the sequence numbers or append ids
                exists.
            OutcomeUnknownError: the request timed out or its connection was lost.
            WorkspaceError: UNAVAILABLE if nothing was written and an immediate retry cannot help.
        """
        ...

    async def read(self, chain: ChainKey, after_sequence: int, *, limit: int, max_bytes: int) -> RecordPage:
        """Return records by ascending sequence number, exactly as stored, without reading the head item.

        Records with the same sequence number, which only forgery creates, are on the same page.

        Args:
            chain: chain to read; for a chain that does not exist, the page is empty.
            after_sequence: return only records with a higher sequence number.
            limit: maximum number of records, at least 1.
            max_bytes: maximum total size of the records' canonical bytes; the first record is returned at any size.
        """
        ...

    async def read_hashes(self, chain: ChainKey, after_sequence: int, *, limit: int) -> Sequence[str]:
        """Return the stored ``Hash`` of each of up to ``limit`` records after ``after_sequence``, in order."""
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
        """Return the records that match filters, in order of their sequence numbers.

        Records with the same sequence number, which only forgery creates, are on the same page.

        Args:
            chain: chain to read; for a chain that does not exist, the page is empty.
            filters: conditions on the records.
            newest_first: whether the newest records come first.
            offset: number of matching records to skip.
            limit: maximum number of records, at least 1.
            max_bytes: maximum total size of the records' canonical bytes; the first record is returned at any size. The
                store can also return fewer records than ``limit`` for other reasons; only ``more`` shows whether the
                end was reached. The caller requests the next page with a narrower range of sequence numbers.
        """
        ...

    async def find(self, chain: ChainKey, lookup_field: LookupField, values: Sequence[str]) -> Sequence[ChainRecord]:
        """Find the records of a chain in which the field ``lookup_field`` has one of the given values.

        Args:
            chain: chain to search.
            lookup_field: field to compare.
            values: at most 100 values: append ids, or RecordIDs of amendments.
        """
        ...

    def iterate_tips(
        self, changed_from_time: str = "", targets: Sequence[Target] = tuple(Target)
    ) -> AsyncIterator[tuple[ChainKey, Tip]]:
        """Yield the key and tip of each chain whose last record is not older than ``changed_from_time``, in any order.

        Args:
            changed_from_time: time in the format of records; empty for all chains.
            targets: yield only chains of these containers.
        """
        ...

    async def close(self) -> None:
        """Finish running operations and close the connections of the store."""
        ...


type Row = tuple[int, Any, str, bytes]
"""Record without its append id: sequence number, canonical bytes, hash, and its filter fields as a JSON array.

The array has no spaces, null for an absent value, and a number if the stored value is not text.
"""


@runtime_checkable
class RowStreams(Protocol):
    """Optional port of a chain store: passes records to the verification as plain tuples (rows), which is faster.

    Only the embedded store has this port: the network limits the speed of Cosmos DB, whose pages must be decoded anyway
    (docs/adr/0027).
    """

    async def stream_rows(
        self, chain: ChainKey, first_sequence: int, last_sequence: int, consume_rows: Callable[[Iterable[Row]], None]
    ) -> None:
        """Read records of a chain as plain tuples (rows), and pass an iterator of them to a function in a thread.

        Args:
            chain: chain to read; a chain that does not exist has no rows.
            first_sequence: lowest sequence number, inclusive.
            last_sequence: highest sequence number, inclusive. The range is read from one snapshot, in constant memory.
            consume_rows: called with an iterator of the rows, exactly as stored, in ascending order; this function may
                return before the last row. If a row is not UTF-8, the function is called a second time with all rows,
                in which replacement characters stand for the invalid bytes. Therefore each call must start from the
                same state.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class DecisionLookup(Protocol):
    """Optional port of a chain store: finds decisions about amendments by the content of records.

    Only the embedded store has this port: Cosmos DB could search the content only with an index over the text of every
    record, which would make each append more expensive (docs/adr/0027).
    """

    async def find_decisions(self, chain: ChainKey, amendment_ids: Sequence[str]) -> Sequence[ChainRecord]:
        """Find the records that decide the given amendments, by their content or by their filter fields.

        The records are in any order; a record can be returned twice.

        Args:
            chain: key of a scope's chain of amendments.
            amendment_ids: RecordIDs of the amendments, at most 100.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class MisplacedRecords(Protocol):
    """Optional port of a chain store that can contain misplaced records.

    A misplaced record is a forged record with an invalid sequence number: a fraction, zero, a negative number or text.
    No other method returns it. While a misplaced record is stored before the first or after the last record, appends
    are rejected. Only the embedded store has this port: in Cosmos DB every read selects ids of 12 digits, so that an
    item with another id is not a record (docs/adr/0027).
    """

    async def find_sequence_after_misplaced_record(self, chain: ChainKey) -> int | None:
        """Find the first misplaced record: a forged one whose sequence number is a fraction, zero, negative or text.

        Args:
            chain: chain to search; a chain that does not exist has no records.

        Returns:
            The next valid sequence number (at least 1) after that of the misplaced record, for example 3 after 2.5. If
            the misplaced record sorts after all other records, the result is higher than the highest valid sequence
            number. None if the chain has no misplaced record.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class OrphanRecords(Protocol):
    """Optional port of a chain store: finds orphans, which are records that no chain's head item includes.

    Only the embedded store has this port: Cosmos DB reads the records of a chain without its head item, so verification
    finds them past the end of the chain (docs/adr/0027).
    """

    async def list_orphan_records(self, chain: ChainKey, genesis_hash: str) -> Sequence[ChainRecord]:
        """Return up to 100 orphans that possibly belong to a chain, lowest sequence number first.

        An orphan is a stored record that no chain's head item includes. If this chain has a head item, the result
        contains the orphans with this chain's genesis hash. If it has none, the result contains all records with the
        genesis hash. It then also contains the orphans that are not the first record of a chain: their chain is
        unknown, because its first record is possibly deleted.

        Args:
            chain: chain to search.
            genesis_hash: genesis hash of the chain.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...

    def iterate_orphan_pages(self, genesis_hash: str) -> AsyncIterator[Sequence[ChainRecord]]:
        """Yield the stored records of a chain that has no head item, as pages, oldest record first.

        The pages begin with the record that contains the chain's genesis hash. This record is an orphan, because no
        head item includes it; the chain's other records follow it.

        Args:
            genesis_hash: genesis hash of the chain.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...
