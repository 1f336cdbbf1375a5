"""Walks a chain link by link: pure computation over stored rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from shared.off_loop import LARGE_VALUES, collection_paused
from shared.provenance.canonical import parsed_if_canonical, record_form
from shared.provenance.event_run import EventRun
from shared.provenance.hash_rule import digest, earlier, is_time, no_text, own_time, projection, record_id, untimed
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import PROJECTED, ChainRecord, Row


@dataclass(frozen=True, slots=True)
class Fault:
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
class Walk:
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
    fault: Fault | None = None
    fork: Fault | None = None
    tree: CompactRange = field(default_factory=CompactRange)

    def __post_init__(self) -> None:
        self.last_hash = self.genesis

    def over(self, rows: Iterable[Row]) -> None:
        """Walk on over the next rows, until something is wrong."""
        with collection_paused(LARGE_VALUES):
            self._over(iter(rows))

    def _over(self, rows: Iterator[Row]) -> None:
        run = EventRun(self.sequence, self.last_hash, self.claimed, self.time, [])
        while (row := run.over(rows, self.leaves)) is not None:
            # Not a plain event, or not a sound one: looked at closely.
            self._take(run)
            if not self._closely(row, run.hashes):
                break
            run.sequence, run.last_hash, run.claimed, run.time = self.sequence, self.last_hash, self.claimed, self.time
        self._take(run)
        self.tree.append(map(bytes.fromhex, run.hashes))

    def _take(self, run: EventRun) -> None:
        self.sequence, self.last_hash, self.claimed, self.time = run.sequence, run.last_hash, run.claimed, run.time

    def _closely(self, row: Row, hashes: list[str]) -> bool:
        """Walk over one record of any kind; False when something is wrong."""
        record = _record_of(row)
        value: Any = parsed_if_canonical(record.canonical) if isinstance(row[1], bytes) else None
        if self._sound(record, value):
            self.sequence, self.last_hash, self.claimed = record.sequence, record.hash, value["PreviousHash"]
            self.time = own_time(value)
            if record.sequence <= self.leaves:
                hashes.append(record.hash)
        elif self._beside(record, value):
            self.fork = self.fork or Fault(record.hash, forked(record.sequence))
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
            and projection(value) == record.projection
            and own_time(value) >= self.time
            and is_time(own_time(value))
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

    def _fault(self, record: ChainRecord, value: Any) -> Fault:
        here = record_id(record.sequence)
        form = record_form(record.canonical)
        if digest(record.canonical) != record.hash and (form is None or digest(form) != record.hash):
            return Fault(here, f"the content of {here} does not have the digest that is stored as its Hash")
        if type(value) is not dict or form != record.canonical:
            return Fault(here, f"{here} is not stored in its canonical form")
        if value.get("PreviousHash") == self.last_hash and record.sequence == self.sequence + 1:
            return self._misstated(record, value, here)
        return Fault(here, self._misplaced(record, value, here), str(value.get("PreviousHash")), record.hash)

    def _misplaced(self, record: ChainRecord, value: dict[str, Any], here: str) -> str:
        """Return the reason of a record that does not follow the last sound one."""
        if value.get("RecordID") != here:
            return stands_for(value.get("RecordID"), here)
        if record.sequence == self.sequence:
            return f"{here} stands there twice"
        if record.sequence != self.sequence + 1:
            return f"{here} stands where {record_id(self.sequence + 1)} is missing"
        return (
            f"{here} does not link to {record_id(self.sequence) if self.sequence else 'the genesis hash of this chain'}"
        )

    def _misstated(self, record: ChainRecord, value: dict[str, Any], here: str) -> Fault:
        """Return the fault of a record that links, and is not what it should be nonetheless."""
        if value.get("RecordID") != here:
            return Fault(here, stands_for(value.get("RecordID"), here))
        stored, said = record.projection, projection(value)
        differing = sorted(name for name in stored.keys() | said.keys() if stored.get(name) != said.get(name))
        if differing:
            return Fault(here, f"the filter fields of {here} differ from its content: {', '.join(differing)}")
        mistimed = earlier(here, self.sequence) if is_time(own_time(value)) else untimed(here)
        return Fault(here, no_text(here, said) or mistimed)


def stands_for(said: object, here: str) -> str:
    """Return the reason of a record that says another RecordID than that of its place."""
    return f"{said} stands where {here} belongs"


def time_of(record: ChainRecord) -> str:
    """Return the own time in a record's content, empty where it has none."""
    value = parsed_if_canonical(record.canonical)
    return own_time(value) if type(value) is dict else ""


def rows_of(records: Iterable[ChainRecord]) -> Iterable[Row]:
    """Give records as rows."""
    for record in records:
        fields = orjson.dumps(tuple(map(record.projection.get, PROJECTED)), default=_no_value)
        yield (record.sequence, record.canonical, record.hash, fields)


def claims_of(records: Sequence[ChainRecord], fault: Fault) -> int | None:
    """Return the sequence of the first other record with the PreviousHash of a faulty one; a copy is no other."""
    claimed = fault.claims
    for record in records:
        if claimed.encode() in record.canonical and record.hash != fault.hash:
            value = parsed_if_canonical(record.canonical)
            if type(value) is dict and value.get("PreviousHash") == claimed:
                return record.sequence
    return None


def fork_at(fault: Fault, other: int) -> Fault:
    """Return the fault of a record that claims the predecessor of an earlier one."""
    return Fault(fault.hash, forked(other))


def forked(sequence: int) -> str:
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


def _no_value(_: object) -> int:
    return 0
