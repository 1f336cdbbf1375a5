"""Walks a chain link by link: pure computation over stored rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

import orjson

from shared.provenance.canonical import (
    LARGEST_PLAIN,
    SMALLEST_PLAIN,
    STRICT,
    canonicalize_record,
    is_plain,
    parse_if_canonical,
)
from shared.provenance.hash_rule import (
    DAY_OF_ANY_MONTH,
    MAX_DEPTH,
    describe_earlier_time,
    describe_invalid_time,
    describe_non_text_fields,
    digest,
    is_time,
    project_record,
    record_id,
    record_time,
)
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import PROJECTED, ChainRecord, Row
from shared.worker_threads import LARGE_VALUES, pause_garbage_collection

_OF_EVENTS: Final = 5
_fields = itemgetter(*PROJECTED[:_OF_EVENTS])
_NO_MORE: Final = b",null" * (len(PROJECTED) - _OF_EVENTS) + b"]"
_NOT_IN_EVENTS: Final = frozenset(("Hash", *PROJECTED[_OF_EVENTS:]))
_TEXTS: Final = _OF_EVENTS + 2
_STATES_DEPTH: Final = MAX_DEPTH - 1


@dataclass(slots=True)
class EventFastPath:
    """Where the stretch ends.

    Attributes:
        sequence: of the last sound record.
        last_hash: its Hash.
        claimed: its PreviousHash.
        time: its own.
        hashes: of the records that were walked over, as many as are wanted.
    """

    sequence: int
    last_hash: str
    claimed: str
    time: str
    hashes: list[str]

    def advance(self, rows: Iterator[Row], leaves: int) -> Row | None:
        """Walk over rows; return the first that is not a sound event or cannot be told quickly, None at the end.

        Args:
            rows: the next ones; what is returned was taken from them.
            leaves: hashes are wanted up to this sequence.
        """
        here, last, claimed, time = self.sequence, self.last_hash, self.claimed, self.time
        loads, dumps, fields, told = orjson.loads, orjson.dumps, _fields, DAY_OF_ANY_MONTH.fullmatch
        for row in rows:
            sequence, canonical, stored, projected = row
            try:
                value: Any = loads(canonical)
                if (
                    sequence != here + 1
                    or sha256(canonical).hexdigest() != stored
                    or value["PreviousHash"] != last
                    or value["RecordID"] != f"{sequence:012d}"
                    or dumps(said := fields(value))[:-1] + _NO_MORE != projected
                    or None in said
                    or said[0] < time
                    or not (said[0] == time > "" or told(said[0]) or is_time(said[0]))
                    or dumps(value, None, STRICT) != canonical
                    or not canonical.isascii()
                    or not _is_plain_event(value)
                ):
                    break
            except (TypeError, ValueError, LookupError, AttributeError):
                break
            here, claimed, last, time = sequence, last, stored, said[0]
            if here <= leaves:
                self.hashes.append(stored)
        else:
            row = None
        self.sequence, self.last_hash, self.claimed, self.time = here, last, claimed, time
        return row


def _is_plain_event(value: dict[str, Any]) -> bool:
    """Return true if an event with text links and filter fields is :func:`is_plain` and no other kind of record.

    Most have these, and one or two states with numbers and text. Those are looked through here.
    """
    states = 0
    for name in ("BeforeState", "AfterState"):
        if name not in value:
            continue
        states += 1
        for item in value[name].values():
            kind = type(item)
            if (
                kind is str
                or kind is int
                or (kind is float and item % 1.0 and SMALLEST_PLAIN <= item <= LARGEST_PLAIN)
                or is_plain((item,), _STATES_DEPTH - 1)
            ):
                continue
            return False
    if len(value) == _TEXTS + states:
        return True
    return _NOT_IN_EVENTS.isdisjoint(value) and is_plain(value.values(), _STATES_DEPTH)


@dataclass(frozen=True, slots=True)
class ChainFault:
    """What is wrong first.

    Attributes:
        broken_at: RecordID of the first bad record; the second record's Hash on a fork; the name of a checkpoint.
        reason: in words.
        claims: the PreviousHash of a record, when it is not the last sound record's Hash; another may claim it too.
        hash: the Hash of that record.
    """

    broken_at: str
    reason: str
    claims: str = ""
    hash: str = ""


@dataclass(slots=True)
class ChainVerification:
    """A walk from the genesis hash on; memory stays the same however long it is.

    Attributes:
        genesis: where the chain starts.
        leaves: keep the Merkle tree of so many first records, for a checkpoint of that size.
        sequence: of the last sound record.
        last_hash: its Hash; the genesis hash at first.
        claimed: its PreviousHash.
        time: its own; empty at first.
        fault: what is wrong first; nothing is walked after it.
        fork: a second record beside a sound one, that claims the same predecessor.
        tree: of the first records' hashes.
    """

    genesis: str
    leaves: int = 0
    sequence: int = 0
    last_hash: str = ""
    claimed: str = ""
    time: str = ""
    fault: ChainFault | None = None
    fork: ChainFault | None = None
    tree: CompactRange = field(default_factory=CompactRange)

    def __post_init__(self) -> None:
        self.last_hash = self.genesis

    def verify_rows(self, rows: Iterable[Row]) -> None:
        """Walk on over the next rows, until something is wrong."""
        with pause_garbage_collection(LARGE_VALUES):
            self._verify_rows(iter(rows))

    def _verify_rows(self, rows: Iterator[Row]) -> None:
        run = EventFastPath(self.sequence, self.last_hash, self.claimed, self.time, [])
        while (row := run.advance(rows, self.leaves)) is not None:
            # Not a plain event, or not a sound one: looked at closely.
            self._take(run)
            if not self._closely(row, run.hashes):
                break
            run.sequence, run.last_hash, run.claimed, run.time = self.sequence, self.last_hash, self.claimed, self.time
        self._take(run)
        self.tree.append(map(bytes.fromhex, run.hashes))

    def _take(self, run: EventFastPath) -> None:
        self.sequence, self.last_hash, self.claimed, self.time = run.sequence, run.last_hash, run.claimed, run.time

    def _closely(self, row: Row, hashes: list[str]) -> bool:
        """Walk over one record of any kind; False when something is wrong."""
        record = _record_of(row)
        value: Any = parse_if_canonical(record.canonical) if isinstance(row[1], bytes) else None
        if self._sound(record, value):
            self.sequence, self.last_hash, self.claimed = record.sequence, record.hash, value["PreviousHash"]
            self.time = record_time(value)
            if record.sequence <= self.leaves:
                hashes.append(record.hash)
        elif self._beside(record, value):
            self.fork = self.fork or ChainFault(record.hash, describe_fork(record.sequence))
        else:
            self.fault = self._fault(record, value)
            return False
        return True

    def _sound(self, record: ChainRecord, value: Any) -> bool:
        sequence = self.sequence + 1
        return (
            type(value) is dict
            and record.sequence == sequence
            and value.get("PreviousHash") == self.last_hash
            and value.get("RecordID") == record_id(sequence)
            and digest(record.canonical) == record.hash
            and project_record(value) == record.projection
            and record_time(value) >= self.time
            and is_time(record_time(value))
            and "Hash" not in value
        )

    def _beside(self, record: ChainRecord, value: Any) -> bool:
        """Tell whether a record stands beside the last sound one as the start of another branch."""
        return (
            type(value) is dict
            and self.sequence > 0
            and value.get("PreviousHash") == self.claimed
            and record.hash != self.last_hash
            and record.sequence == self.sequence
            and digest(record.canonical) == record.hash
        )

    def _fault(self, record: ChainRecord, value: Any) -> ChainFault:
        here = record_id(record.sequence)
        form = canonicalize_record(record.canonical)
        if digest(record.canonical) != record.hash and (form is None or digest(form) != record.hash):
            return ChainFault(here, f"the content of {here} does not have the digest that is stored as its Hash")
        if type(value) is not dict or form != record.canonical:
            return ChainFault(here, f"{here} is not stored in its canonical form")
        if value.get("PreviousHash") == self.last_hash and record.sequence == self.sequence + 1:
            return self._misstated(record, value, here)
        return ChainFault(here, self._misplaced(record, value, here), str(value.get("PreviousHash")), record.hash)

    def _misplaced(self, record: ChainRecord, value: dict[str, Any], here: str) -> str:
        """Return the reason of a record that does not follow the last sound one."""
        if value.get("RecordID") != here:
            return describe_wrong_id(value.get("RecordID"), here)
        if record.sequence == self.sequence:
            return f"{here} stands there twice"
        if record.sequence != self.sequence + 1:
            return f"{here} stands where {record_id(self.sequence + 1)} is missing"
        return (
            f"{here} does not link to {record_id(self.sequence) if self.sequence else 'the genesis hash of this chain'}"
        )

    def _misstated(self, record: ChainRecord, value: dict[str, Any], here: str) -> ChainFault:
        """Return the fault of a record that links, and is not what it should be nonetheless."""
        if value.get("RecordID") != here:
            return ChainFault(here, describe_wrong_id(value.get("RecordID"), here))
        stored, said = record.projection, project_record(value)
        differing = sorted(name for name in stored.keys() | said.keys() if stored.get(name) != said.get(name))
        if differing:
            return ChainFault(here, f"the filter fields of {here} differ from its content: {', '.join(differing)}")
        mistimed = (
            describe_earlier_time(here, self.sequence) if is_time(record_time(value)) else describe_invalid_time(here)
        )
        return ChainFault(here, describe_non_text_fields(here, said) or mistimed)


def describe_wrong_id(said: object, here: str) -> str:
    """Return the reason of a record that says another RecordID than that of its place."""
    return f"{said} stands where {here} belongs"


def content_time(record: ChainRecord) -> str:
    """Return the own time in a record's content, empty where it has none."""
    value = parse_if_canonical(record.canonical)
    return record_time(value) if type(value) is dict else ""


def to_rows(records: Iterable[ChainRecord]) -> Iterable[Row]:
    """Give records as rows."""
    for record in records:
        fields = orjson.dumps(tuple(map(record.projection.get, PROJECTED)), default=_replace_non_text)
        yield (record.sequence, record.canonical, record.hash, fields)


def find_competing_record(records: Sequence[ChainRecord], fault: ChainFault) -> int | None:
    """Return the sequence of the first other record with the PreviousHash of a faulty one; a copy is no other."""
    claimed = fault.claims
    for record in records:
        if claimed.encode() in record.canonical and record.hash != fault.hash:
            value = parse_if_canonical(record.canonical)
            if type(value) is dict and value.get("PreviousHash") == claimed:
                return record.sequence
    return None


def fork_fault(fault: ChainFault, other: int) -> ChainFault:
    """Return the fault of a record that claims the predecessor of an earlier one."""
    return ChainFault(fault.hash, describe_fork(other))


def describe_fork(sequence: int) -> str:
    """Return the reason of a fork beside the record of a sequence."""
    return f"fork: a second record claims the predecessor of {record_id(sequence)}"


def _record_of(row: Row) -> ChainRecord:
    """Return a row as a record; content of another type than bytes is no canonical form, but has a digest."""
    canonical = row[1] if isinstance(row[1], bytes) else str(row[1]).encode("utf-8", "surrogatepass")
    return ChainRecord(row[0], canonical, row[2], "", _fields_of(row[3]))


def _fields_of(array: bytes) -> dict[str, str]:
    try:
        values = orjson.loads(array)
    except ValueError:
        # Stored are characters that no text has: none of the fields is what the content says.
        return dict.fromkeys(PROJECTED, "\ud800")
    return {name: value for name, value in zip(PROJECTED, values, strict=True) if value is not None}


def _replace_non_text(_: object) -> int:
    return 0
