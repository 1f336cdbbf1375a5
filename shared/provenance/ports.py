"""What other domains need of the audit log, and what the audit log needs of its stores."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Target(StrEnum):
    """The four containers of audit records; the first two are workspace chains, the others have one chain a scope."""

    PLATFORM_CONFIG = "PlatformConfig"
    ACCESS_CONTROL = "AccessControl"
    DOMAIN_EVENTS = "DomainEvents"
    DOMAIN_AMENDMENTS = "DomainAmendments"


class AuditLog(Protocol):
    """Appends audit events to a chain."""

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one event; when this returns, it is stored durably, once.

        Args:
            target: the container.
            user_id: the acting principal, becomes ``UserID``.
            event: ActionType, EntityType, EntityID and optionally NodeID, BeforeState, AfterState, Name, Description.
            append_id: unique per event; the same id again returns the record already stored.
            scope_key: the scope of a domain chain, empty for a workspace chain.

        Returns:
            The stored record, RecordID, Timestamp, PreviousHash and Hash included.

        Raises:
            WorkspaceError: UNAVAILABLE when the store does not answer.
        """
        ...


class ChainKey(NamedTuple):
    """Names one chain of the workspace; a tuple, since each append looks its chain up.

    Attributes:
        target: the container.
        scope_key: the scope of a domain chain, any text; empty for a workspace chain.
    """

    target: Target
    scope_key: str = ""


@dataclass(frozen=True, slots=True)
class Tip:
    """The end of a chain as its head item says it.

    Attributes:
        sequence: of the last record; 0 when nothing was ever appended.
        hash: ``Hash`` of the last record; empty when there is none.
        timestamp: the last record's own time, RFC 3339 in UTC with microseconds; empty when there is none.
        token: the store's own, opaque to everybody else (for instance segment and ETag); empty when there is no head.
    """

    sequence: int = 0
    hash: str = ""
    timestamp: str = ""
    token: str = ""


class ChainRecord(NamedTuple):
    """A record as a store keeps it; a tuple, since walks make millions of them.

    Attributes:
        sequence: its place, from 1; the store's key, whatever ``canonical`` says.
        canonical: RFC 8785 bytes of the record without ``Hash``.
        hash: lowercase hex SHA-256 of these bytes.
        append_id: unique in its chain; never shown to callers.
        projection: the fields that filters look at, by the names of :data:`PROJECTED`; absent ones are left out.
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
"""Names of projected fields. ``UserID`` and ``Timestamp`` are the actor and the own time of any kind of record."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which records of a chain to give; all conditions hold together.

    Attributes:
        equal: projected fields and the value that each must have, compared exactly; ``Timestamp`` is not among them.
        absent: projected fields that a record must not have.
        start: earliest ``Timestamp``, inclusive, in the records' own format; empty for none.
        end: latest ``Timestamp``, inclusive; empty for none. Timestamps never decrease along a chain.
        from_sequence: lowest sequence, inclusive; None for none.
        to_sequence: highest sequence, inclusive; None for none.
    """

    equal: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    from_sequence: int | None = None
    to_sequence: int | None = None


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some records in the order asked for.

    Attributes:
        records: those given.
        more: whether further matches follow them; a page with more to come has one record at least.
        scanned: records that the store read for it, skipped ones and the one that tells ``more`` included.
    """

    records: Sequence[ChainRecord]
    more: bool
    scanned: int


class Lookup(StrEnum):
    """What :meth:`ChainStore.find` finds records by."""

    APPEND_ID = "AppendID"
    AMENDMENT_ID = "AmendmentID"


class TipMovedError(Exception):
    """The chain's tip is not the expected one; nothing was written."""


class OutcomeUnknownError(Exception):
    """Whether the batch was written is not known: re-read the tip and look its append ids up before trying again.

    Also right when the batch may still be written later: the retry carries the same expected tip, so that one of both
    is refused.
    """


class ChainStore(Protocol):
    """Keeps chains: create-only records and one head item a chain, replaced together with the records it counts.

    Every read sees each append that was answered before the read began, whoever made it (Cosmos: strong or bounded
    staleness in a single write region). Scope keys are any text: adapters encode them where their ids are limited.
    A record has up to 1,500,000 canonical bytes; the weight of each such record must fit in a batch.
    Unless said otherwise methods raise ``WorkspaceError`` UNAVAILABLE with code ``PROVENANCE_UNAVAILABLE`` when the
    store does not answer; nothing was written then.

    Attributes:
        max_batch_records: most records of one append.
        max_batch_weight: most :meth:`weight` of one append, in bytes.
    """

    @property
    def max_batch_records(self) -> int: ...  # noqa: D102

    @property
    def max_batch_weight(self) -> int: ...  # noqa: D102

    def weight(self, canonical: bytes) -> int:
        """Return the bytes that a record takes in a batch, escapes and projected fields included; may be too much."""
        ...

    async def provision(self, chain: ChainKey) -> None:
        """Make ready what the first append of a chain needs; may take long; changes nothing when it is there.

        Called while the tip's sequence is 0, before the append. It makes no head.
        """
        ...

    async def tip(self, chain: ChainKey) -> Tip:
        """Return what the head item says, in constant time; ``Tip()`` for a chain never written."""
        ...

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> Tip:
        """Write records and the head that names the last of them, all or nothing, durably.

        Args:
            chain: which chain.
            records: 1 to ``max_batch_records``, sequences from ``expected.sequence + 1`` without gap.
            expected: a tip got from this store (:meth:`tip`, or an earlier append), still the chain's.

        Returns:
            The new tip.

        Raises:
            TipMovedError: the head is another one by now, or one of the sequences or append ids exists.
            OutcomeUnknownError: a time-out, a dropped connection and the like after the request was sent.
            WorkspaceError: UNAVAILABLE; certainly nothing was written, and trying again at once is pointless.
        """
        ...

    async def read(self, chain: ChainKey, after: int, *, limit: int, max_bytes: int) -> RecordPage:
        """Return records by ascending sequence, exactly as they are stored, for walks; never consults the head.

        Args:
            chain: which chain; one never written gives an empty page.
            after: the first record given has a higher sequence.
            limit: most records, at least 1.
            max_bytes: canonical bytes after which to stop; one record is given however long it is.

        Records of one sequence (only a forger makes two) come in one page.
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
        """Return the records that match, in order of sequence.

        Args:
            chain: which chain; one never written gives an empty page.
            filters: what to match.
            newest_first: descending order, else ascending.
            offset: matches to skip first.
            limit: most records, at least 1.
            max_bytes: canonical bytes after which to stop; one record is given however long it is. A page may be
                shorter than ``limit`` for the store's own reasons too: ``more`` alone says whether the end was reached.
                The next page is asked for with a narrower sequence window.
        """
        ...

    async def find(self, chain: ChainKey, by: Lookup, values: Sequence[str]) -> Sequence[ChainRecord]:
        """Return the records of the whole chain whose append id, or AmendmentID, is one of at most 100 values."""
        ...

    def tips(self, changed_from: str = "") -> AsyncIterator[tuple[ChainKey, Tip]]:
        """Give every chain whose last record's timestamp is ``changed_from`` or later, in any order, streaming."""
        ...

    async def close(self) -> None:
        """Finish what runs and let go of connections."""
        ...


type Row = tuple[int, Any, str, bytes]
"""A record without its append id: sequence, canonical, hash, and the values of :data:`PROJECTED` as a JSON array.

The array has no spaces, null for an absent value, and a number where something else than text is stored.
"""


@runtime_checkable
class RowStreams(Protocol):
    """What a chain store may have besides: rows for walks, without a record made of each."""

    async def stream(self, chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        """Hand the rows of a window to a function, which runs off the event loop and may stop early.

        Args:
            chain: which chain; one never written gives no rows.
            first: lowest sequence, inclusive.
            last: highest sequence, inclusive; the window is read as one, in constant memory.
            work: takes the rows by ascending sequence, exactly as they are stored; called once more, from the first
                row on, when one turns out to be unreadable as it is.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class DecisionLookup(Protocol):
    """What a chain store has besides that finds decisions about corrections by what they say."""

    async def find_decisions(self, chain: ChainKey, amendments: Sequence[str]) -> Sequence[ChainRecord]:
        """Return the records about corrections, by their content or by their filter field, in any order, some twice.

        Args:
            chain: a scope's chain of corrections.
            amendments: at most 100 RecordIDs of corrections.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class MisplacedRecords(Protocol):
    """What a chain store has besides where a forger can put records in no place: at fractions, zero, below, at text.

    No other method gives them. An append is refused while one stands past the end, or before the first place.
    """

    async def find_misplaced(self, chain: ChainKey) -> int | None:
        """Return the sequence that comes behind the first of them, None without any.

        Args:
            chain: which chain; one never written has none.

        Returns:
            From 1; beyond the last that there can be for one that stands behind all.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@runtime_checkable
class OrphanRecords(Protocol):
    """What a chain store has besides whose records are found by way of the head item alone."""

    async def list_orphans(self, chain: ChainKey, genesis: str) -> Sequence[ChainRecord]:
        """Return records that may be the earliest of this chain and are not to be reached as such, up to 100.

        Those that hold its genesis hash; and for a chain without a head those, too, that belong to no head and are not
        the first record of any chain: whose they are only their content may tell.

        Args:
            chain: which chain. When it has a head, only records without any are given, else those of other heads, too.
            genesis: its genesis hash.

        Raises:
            WorkspaceError: as the methods of :class:`ChainStore`.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint as its store keeps it.

    Attributes:
        name: blob name, unique in the store.
        note: the signed note, UTF-8.
        created_at: when the store took it, RFC 3339 in UTC with microseconds.
    """

    name: str
    note: bytes
    created_at: str


class CheckpointStore(Protocol):
    """Keeps signed notes that cannot be changed, and beside them replaceable working state that can be made reload.

    Names consist of ``A-Za-z0-9._-/``, are at most 200 characters long, and sort by size of the checkpoint. Methods
    raise ``WorkspaceError`` UNAVAILABLE, code ``CHECKPOINTS_UNAVAILABLE``, when the store does not answer.
    """

    async def create(self, name: str, note: bytes) -> bool:
        """Store a note durably under a new name; False when the name is taken, whatever stands there."""
        ...

    async def newest(self, prefix: str) -> StoredCheckpoint | None:
        """Return the note with the last name that starts with a prefix, None without one."""
        ...

    async def get(self, name: str) -> StoredCheckpoint | None:
        """Return the note of a name, None without one."""
        ...

    async def save_state(self, name: str, state: bytes) -> None:
        """Replace the working state of a name; losing it costs time, never truth."""
        ...

    async def state(self, name: str) -> bytes | None:
        """Return the working state of a name, None without one."""
        ...


class NoteSigner(Protocol):
    """The ECDSA P-256 key that signs checkpoints, and those that did before it.

    Methods raise ``WorkspaceError`` UNAVAILABLE when the key cannot be reached, and CONFLICT ``CHECKPOINT_REFUSED``
    when it is gone though it signed checkpoints that are kept: nothing is to be signed, or judged, without it.
    """

    async def sign(self, message: bytes) -> bytes:
        """Return the signature over SHA-256 of a message, r and s as 64 bytes."""
        ...

    async def public_key(self) -> bytes:
        """Return the public key as DER SubjectPublicKeyInfo."""
        ...

    async def trusted_keys(self, *, reload: bool = False) -> Sequence[bytes]:
        """Return the public keys whose signatures count, that of the key that signs and of those retired.

        Args:
            reload: do not rely on what was read before.
        """
        ...
