"""Verification of the stored rows (records) of an audit chain, one after the other, without I/O.

Most records are simple events: events in ASCII whose numbers orjson and RFC 8785 write equally. The fast path verifies
them in one loop with few calls. All other records are verified by the complete rules, which also describe faults.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

import orjson

from shared.interpreter import LARGE_VALUES, pause_garbage_collection
from shared.provenance.canonical import (
    LARGEST_PLAIN,
    SMALLEST_PLAIN,
    STRICT,
    has_orjson_canonical_numbers,
    parse_json_if_canonical,
    try_canonicalise_record,
)
from shared.provenance.hash_rule import (
    DAY_OF_ANY_MONTH,
    MAX_DEPTH,
    compute_record_hash,
    describe_invalid_time,
    describe_non_text_fields,
    describe_time_order_fault,
    format_record_id,
    get_filter_fields,
    get_record_time,
    is_record_time,
)
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import PROJECTED, ChainRecord, Row
from shared.provenance.signatures import MEMBER

_EVENT_FIELD_COUNT: Final = 5
_fields = itemgetter(*PROJECTED[:_EVENT_FIELD_COUNT])
_NULL_FIELDS: Final = b",null" * (len(PROJECTED) - _EVENT_FIELD_COUNT) + b"]"
_NOT_IN_EVENTS: Final = frozenset(("Hash", *PROJECTED[_EVENT_FIELD_COUNT:]))
_TEXT_MEMBERS: Final = _EVENT_FIELD_COUNT + 2
_STATES_DEPTH: Final = MAX_DEPTH - 1


@dataclass(slots=True)
class EventFastPath:
    """Fast verification of consecutive simple events (ASCII, ordinary numbers), with the state of the verification.

    Attributes:
        sequence: sequence number of the last valid record.
        last_hash: Hash of that record.
        previous_hash: PreviousHash of that record.
        time: time of that record.
        hashes: ``Hash`` of each verified record that belongs to the Merkle tree.
    """

    sequence: int
    last_hash: str
    previous_hash: str
    time: str
    hashes: list[str]

    def verify_simple_events_until_other_row(self, rows: Iterator[Row], leaf_count: int) -> Row | None:
        """Verify rows (records) while they are valid simple events.

        A simple event is in ASCII, and orjson and RFC 8785 write its numbers equally. Return the first row that is not
        a valid simple event, or None after the last row.

        Args:
            rows: iterator over the next rows of the chain; it continues after the returned row.
            leaf_count: highest sequence number whose Hash is added to ``hashes``.
        """
        here, last, previous_hash, time = self.sequence, self.last_hash, self.previous_hash, self.time
        loads, dumps, fields, matches_time = orjson.loads, orjson.dumps, _fields, DAY_OF_ANY_MONTH.fullmatch
        for row in rows:
            sequence, canonical, stored, projected = row
            try:
                value: Any = loads(canonical)
                if (
                    sequence != here + 1
                    or sha256(canonical).hexdigest() != stored
                    or value["PreviousHash"] != last
                    or value["RecordID"] != f"{sequence:012d}"
                    or dumps(projection := fields(value))[:-1] + _NULL_FIELDS != projected
                    # Raises TypeError for a field that is not text: the stored field can be the same number.
                    or not "".join(projection)
                    or projection[0] < time
                    or not (projection[0] == time > "" or matches_time(projection[0]) or is_record_time(projection[0]))
                    or dumps(value, None, STRICT) != canonical
                    or not canonical.isascii()
                    or not _is_simple_event(value)
                ):
                    break
            except (TypeError, ValueError, LookupError, AttributeError):
                break
            here, previous_hash, last, time = sequence, last, stored, projection[0]
            if here <= leaf_count:
                self.hashes.append(stored)
        else:
            row = None
        self.sequence, self.last_hash, self.previous_hash, self.time = here, last, previous_hash, time
        return row


def _is_simple_event(value: dict[str, Any]) -> bool:
    """Return whether a record's content is an event whose numbers orjson and RFC 8785 write equally.

    The links, the filter fields and the characters (ASCII) of the record are not checked.

    Most events have one or two states (BeforeState, AfterState) of numbers and text. They are checked without a
    function call.
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
                or has_orjson_canonical_numbers((item,), _STATES_DEPTH - 1)
            ):
                continue
            return False
    if len(value) == _TEXT_MEMBERS + states:
        return True
    return _NOT_IN_EVENTS.isdisjoint(value) and has_orjson_canonical_numbers(value.values(), _STATES_DEPTH)


@dataclass(frozen=True, slots=True)
class ChainFault:
    """First fault that the verification of a chain found.

    Attributes:
        broken_at: RecordID of the first invalid record, Hash of the second record of a fork, or name of a checkpoint.
        reason: description of the fault.
        previous_hash: PreviousHash of the faulty record if the record is possibly part of a fork, because its sequence
            number or PreviousHash does not follow the last valid record; else empty.
        hash: Hash of the faulty record.
        is_fork: whether the faulty record has the same PreviousHash as another record.
    """

    broken_at: str
    reason: str
    previous_hash: str = ""
    hash: str = ""
    is_fork: bool = False


@dataclass(slots=True)
class ChainVerification:
    """State of the verification of one chain, in constant memory.

    Attributes:
        genesis: genesis hash of the chain.
        leaves: number of records, from the first one, to add to the Merkle tree: the number that a checkpoint covers.
        sequence: sequence number of the last valid record.
        last_hash: Hash of that record; initially the genesis hash.
        previous_hash: PreviousHash of that record; initially empty.
        time: time of that record; initially empty.
        fault: first fault, at which the verification stops; None if there is none yet.
        fork: fault of the first record that has the same PreviousHash as an earlier, different record; None if there is
            none yet.
        tree: Merkle tree of the hashes of the verified records, up to ``leaves`` records.
        signed: sequence numbers of the first and the last record with a signature; zeros if there is none.
    """

    genesis: str
    leaves: int = 0
    sequence: int = 0
    last_hash: str = ""
    previous_hash: str = ""
    time: str = ""
    fault: ChainFault | None = None
    fork: ChainFault | None = None
    tree: CompactRange = field(default_factory=CompactRange)
    signed: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.last_hash = self.genesis

    def verify_rows(self, rows: Iterable[Row]) -> None:
        """Verify the next rows (records) of the chain, up to the first fault."""
        with pause_garbage_collection(LARGE_VALUES):
            self._verify_rows(iter(rows))

    def _verify_rows(self, rows: Iterator[Row]) -> None:
        fast_path = EventFastPath(self.sequence, self.last_hash, self.previous_hash, self.time, [])
        while (row := fast_path.verify_simple_events_until_other_row(rows, self.leaves)) is not None:
            # Not a simple valid event: apply the complete rules.
            self._copy_state_from(fast_path)
            if not self._try_verify_row_and_append_hash(row, fast_path.hashes):
                break
            fast_path.sequence, fast_path.last_hash, fast_path.previous_hash, fast_path.time = (
                self.sequence,
                self.last_hash,
                self.previous_hash,
                self.time,
            )
        self._copy_state_from(fast_path)
        self.tree.append(map(bytes.fromhex, fast_path.hashes))

    def _copy_state_from(self, fast_path: EventFastPath) -> None:
        self.sequence, self.last_hash, self.previous_hash, self.time = (
            fast_path.sequence,
            fast_path.last_hash,
            fast_path.previous_hash,
            fast_path.time,
        )

    def _try_verify_row_and_append_hash(self, row: Row, hashes: list[str]) -> bool:
        """Verify one record by all rules, without the fast path; return False if the record is faulty.

        The Hash of a valid record that belongs to the Merkle tree is appended to ``hashes``.
        """
        record = _record_from_row(row)
        value: Any = parse_json_if_canonical(record.canonical) if isinstance(row[1], bytes) else None
        if self._is_next_valid_record(record, value):
            self.sequence, self.last_hash, self.previous_hash = record.sequence, record.hash, value["PreviousHash"]
            self.time = get_record_time(value)
            if MEMBER in value:
                self.extend_range_of_signed_records(record.sequence, record.sequence)
            if record.sequence <= self.leaves:
                hashes.append(record.hash)
        elif self._is_fork_of_last_record(record, value):
            self.fork = self.fork or build_fork_fault(record.hash, record.sequence)
        else:
            self.fault = self._build_fault(record, value)
            return False
        return True

    def extend_range_of_signed_records(self, first_sequence: int, last_sequence: int) -> None:
        """Extend ``signed``, the range of signed records, to later records with a signature.

        Args:
            first_sequence: sequence number of the first of these later records; 0 if there are none.
            last_sequence: sequence number of the last of these later records; 0 if there are none.
        """
        self.signed = (self.signed[0] or first_sequence, last_sequence or self.signed[1])

    def _is_next_valid_record(self, record: ChainRecord, value: Any) -> bool:
        sequence = self.sequence + 1
        return (
            type(value) is dict
            and record.sequence == sequence
            and value.get("PreviousHash") == self.last_hash
            and value.get("RecordID") == format_record_id(sequence)
            and compute_record_hash(record.canonical) == record.hash
            and get_filter_fields(value) == record.projection
            and all(isinstance(one, str) for one in record.projection.values())
            and get_record_time(value) >= self.time
            and is_record_time(get_record_time(value))
            and "Hash" not in value
        )

    def _is_fork_of_last_record(self, record: ChainRecord, value: Any) -> bool:
        """Return whether a record has the sequence number and PreviousHash of the last valid one, but other content."""
        return (
            type(value) is dict
            and self.sequence > 0
            and value.get("PreviousHash") == self.previous_hash
            and record.hash != self.last_hash
            and record.sequence == self.sequence
            and compute_record_hash(record.canonical) == record.hash
        )

    def _build_fault(self, record: ChainRecord, content: Any) -> ChainFault:
        here = format_record_id(record.sequence)
        form = try_canonicalise_record(record.canonical)
        if compute_record_hash(record.canonical) != record.hash and (
            form is None or compute_record_hash(form) != record.hash
        ):
            return ChainFault(here, f"the digest of the content of {here} differs from its stored Hash")
        if type(content) is not dict or form != record.canonical:
            return ChainFault(here, f"{here} is not stored in its canonical form")
        if content.get("PreviousHash") == self.last_hash and record.sequence == self.sequence + 1:
            return self._build_wrong_content_fault(record, content, here)
        return ChainFault(
            here, self._describe_wrong_position(record, content, here), str(content.get("PreviousHash")), record.hash
        )

    def _describe_wrong_position(self, record: ChainRecord, content: dict[str, Any], expected_record_id: str) -> str:
        """Describe the fault of a record whose number or PreviousHash does not follow the last valid record.

        Args:
            record: the record as it is stored.
            content: parsed content of the record.
            expected_record_id: RecordID of the position at which the record is stored.
        """
        if content.get("RecordID") != expected_record_id:
            return describe_wrong_record_id(content.get("RecordID"), expected_record_id)
        if record.sequence == self.sequence:
            return f"{expected_record_id} is stored twice"
        if record.sequence != self.sequence + 1:
            return f"{expected_record_id} is stored where {format_record_id(self.sequence + 1)} is missing"
        before = format_record_id(self.sequence) if self.sequence else "the genesis hash of this chain"
        return f"{expected_record_id} does not link to {before}"

    def _build_wrong_content_fault(
        self, record: ChainRecord, content: dict[str, Any], expected_record_id: str
    ) -> ChainFault:
        """Build the fault of a record with valid number and PreviousHash, but invalid content."""
        if content.get("RecordID") != expected_record_id:
            return ChainFault(expected_record_id, describe_wrong_record_id(content.get("RecordID"), expected_record_id))
        stored, computed = record.projection, get_filter_fields(content)
        differing = sorted(name for name in stored.keys() | computed.keys() if stored.get(name) != computed.get(name))
        if differing:
            return ChainFault(
                expected_record_id,
                f"the filter fields of {expected_record_id} differ from its content: {', '.join(differing)}",
            )
        mistimed = (
            describe_time_order_fault(expected_record_id, self.sequence)
            if is_record_time(get_record_time(content))
            else describe_invalid_time(expected_record_id)
        )
        return ChainFault(expected_record_id, describe_non_text_fields(expected_record_id, computed) or mistimed)


def describe_wrong_record_id(stated_record_id: object, expected_record_id: str) -> str:
    """Describe the fault of a record whose content states another RecordID than its position in the chain has."""
    return f"{stated_record_id} is stored in the place of {expected_record_id}"


def read_content_time(record: ChainRecord) -> str:
    """Return the time in a record's JSON content, as the text that is written there; an empty string if it has none."""
    value = parse_json_if_canonical(record.canonical)
    return get_record_time(value) if type(value) is dict else ""


def to_rows(records: Iterable[ChainRecord]) -> Iterable[Row]:
    """Convert records to rows (plain tuples), the form in which the verification reads records."""
    for record in records:
        yield (record.sequence, record.canonical, record.hash, _encode_filter_fields(record.projection))


def find_sequence_with_same_predecessor(records: Sequence[ChainRecord], fault: ChainFault) -> int | None:
    """Find a record with the PreviousHash of the faulty record, but another Hash; return its sequence number.

    Return None if none of ``records`` is such a record.
    """
    previous_hash = fault.previous_hash
    for record in records:
        if previous_hash.encode() in record.canonical and record.hash != fault.hash:
            value = parse_json_if_canonical(record.canonical)
            if type(value) is dict and value.get("PreviousHash") == previous_hash:
                return record.sequence
    return None


def build_fork_fault(record_hash: str, other_sequence: int) -> ChainFault:
    """Build the fault of a fork: the record with this hash has the PreviousHash of another record."""
    reason = f"fork: this record and {format_record_id(other_sequence)} have the same PreviousHash"
    return ChainFault(record_hash, reason, is_fork=True)


def _record_from_row(row: Row) -> ChainRecord:
    """Convert a row to a record; content that is not bytes is converted to bytes, so that it can be hashed."""
    canonical = row[1] if isinstance(row[1], bytes) else str(row[1]).encode("utf-8", "surrogatepass")
    return ChainRecord(row[0], canonical, row[2], "", _parse_filter_fields(row[3]))


def _parse_filter_fields(json_array: bytes) -> dict[str, str]:
    try:
        values = orjson.loads(json_array)
    except ValueError:
        # A stored field has invalid characters or no JSON form, so no field can equal the content.
        return dict.fromkeys(PROJECTED, "\ud800")
    return {name: value for name, value in zip(PROJECTED, values, strict=True) if value is not None}


def _encode_filter_fields(fields: Mapping[str, str]) -> bytes:
    """Encode filter fields as the JSON array of a row; return no bytes if a field has a value that JSON cannot contain.

    Verification rejects a row without these bytes: :func:`_parse_filter_fields` then returns values that differ from
    the content of every record.
    """
    try:
        return orjson.dumps(tuple(map(fields.get, PROJECTED)))
    except TypeError:
        return b""
