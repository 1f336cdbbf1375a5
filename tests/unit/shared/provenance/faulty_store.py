"""Fake chain store in memory that injects faults; it shares no code with the real adapters."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    Filters,
    LookupField,
    OutcomeUnknownError,
    RecordPage,
    Target,
    Tip,
    TipMovedError,
)
from shared.provenance.records import build_event_draft, seal_record


class AppendOutcome(Enum):
    """Outcome of an append to the store, chosen by a test."""

    STORED = auto()
    UNKNOWN_STORED = auto()
    UNKNOWN_LOST = auto()
    UNKNOWN_LATE = auto()
    MOVED = auto()
    UNAVAILABLE = auto()


@dataclass
class FaultyStore:
    """Fake ChainStore in memory, whose appends have the outcomes that a test chooses.

    Attributes:
        outcomes: outcomes of the next appends; all later appends succeed.
        gate: event for which each append waits first.
        chains: stored records of each chain.
        provisioned: number of provisionings of each chain.
        batches: sizes of the stored batches.
        max_batch_records: as in the port.
        max_batch_bytes: as in the port.
    """

    outcomes: list[AppendOutcome] = field(default_factory=list)
    read_failures: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    chains: dict[ChainKey, list[ChainRecord]] = field(default_factory=dict)
    provisioned: Counter[ChainKey] = field(default_factory=Counter)
    batches: list[int] = field(default_factory=list)
    late: list[Callable[[], None]] = field(default_factory=list)
    max_batch_records: int = 5
    max_batch_bytes: int = 2_000_000
    started: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    def measure_bytes_in_batch(self, canonical_json: bytes) -> int:
        """Return a record's size with each quote counted twice, like an adapter that escapes quotes."""
        return len(canonical_json) + canonical_json.count(b'"')

    async def provision(self, chain: ChainKey) -> None:
        """Count the call, and wait until the test opens the gate."""
        self.provisioned[chain] += 1
        await self.gate.wait()

    async def read_tip(self, chain: ChainKey) -> Tip:
        """Return the tip (newest record) of the chain."""
        await self._raise_injected_error()
        return self._read_tip(chain)

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected_tip: Tip) -> Tip:
        """Append with the next outcome that the test has chosen; without one, store the records."""
        self.started.set()
        await self.gate.wait()
        outcome = self.outcomes.pop(0) if self.outcomes else AppendOutcome.STORED
        if outcome is AppendOutcome.UNAVAILABLE:
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "injected failure")
        if outcome is AppendOutcome.MOVED:
            self.append_as_another_process(chain)
        if outcome is AppendOutcome.UNKNOWN_LATE:
            self.late.append(lambda: self._append_delayed(chain, records, expected_tip))
        if outcome in (AppendOutcome.STORED, AppendOutcome.UNKNOWN_STORED, AppendOutcome.MOVED):
            self._store_records(chain, records, expected_tip)
        await asyncio.sleep(0)
        if outcome in (AppendOutcome.UNKNOWN_STORED, AppendOutcome.UNKNOWN_LOST, AppendOutcome.UNKNOWN_LATE):
            raise OutcomeUnknownError("injected unknown outcome")
        return self._read_tip(chain)

    async def read(self, chain: ChainKey, after: int, *, limit: int, max_bytes: int) -> RecordPage:
        """Return records after a sequence number, in order."""
        await self._raise_injected_error()
        found = [record for record in self.chains.get(chain, []) if record.sequence > after]
        return RecordPage(found[:limit], len(found) > limit, min(len(found), limit + 1) + max_bytes * 0)

    async def read_hashes(self, chain: ChainKey, after_sequence: int, *, limit: int) -> Sequence[str]:
        """Return Hashes after a sequence number, in order."""
        return [record.hash for record in self.chains.get(chain, []) if record.sequence > after_sequence][:limit]

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
        """Raise an error, because no test of the append engine scans."""
        raise NotImplementedError

    async def find(self, chain: ChainKey, lookup_field: LookupField, values: Sequence[str]) -> Sequence[ChainRecord]:
        """Find records, then complete the delayed appends, because this moment is the worst for a retry."""
        await self._raise_injected_error()
        wanted = set(values)
        found = [record for record in self.chains.get(chain, []) if _get_key(record, lookup_field) in wanted]
        while self.late:
            self.late.pop(0)()
        return found

    async def iterate_tips(
        self, changed_from_time: str = "", targets: Sequence[Target] = tuple(Target)
    ) -> AsyncIterator[tuple[ChainKey, Tip]]:
        """Yield the tip of every chain."""
        for chain in list(self.chains):
            if chain.target in targets and self._read_tip(chain).timestamp >= changed_from_time:
                yield chain, self._read_tip(chain)

    async def close(self) -> None:
        """Do nothing, because this fake store has nothing to close."""

    def append_as_another_process(self, chain: ChainKey) -> None:
        """Append a record, as another process would."""
        tip = self._read_tip(chain)
        previous = tip.hash or compute_genesis_hash("plant-a", chain.target, chain.scope_key)
        draft = build_event_draft("another", {"ActionType": "Other", "EntityType": "T", "EntityID": "x"})
        timestamp = max(tip.timestamp, "2026-01-01T00:00:00.000000Z")
        record = seal_record(draft, tip.sequence + 1, timestamp, previous, f"other-{tip.sequence + 1}")
        self.chains.setdefault(chain, []).append(record)

    def _append_delayed(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> None:
        if self._read_tip(chain) == expected:
            self._store_records(chain, records, expected)

    def _store_records(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> None:
        stored = self.chains.get(chain, [])
        if self._read_tip(chain) != expected:
            raise TipMovedError
        assert [record.sequence for record in records] == list(range(len(stored) + 1, len(stored) + 1 + len(records)))
        assert len(records) <= self.max_batch_records
        assert sum(self.measure_bytes_in_batch(record.canonical) for record in records) <= self.max_batch_bytes
        assert len({record.append_id for record in (*stored, *records)}) == len(stored) + len(records)
        self.batches.append(len(records))
        self.chains.setdefault(chain, []).extend(records)

    def _read_tip(self, chain: ChainKey) -> Tip:
        stored = self.chains.get(chain)
        if not stored:
            return Tip()
        return Tip(len(stored), stored[-1].hash, stored[-1].projection["Timestamp"], f"etag-{len(stored)}")

    async def _raise_injected_error(self) -> None:
        await asyncio.sleep(0)
        if self.read_failures:
            self.read_failures -= 1
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "injected failure")


def _get_key(record: ChainRecord, by: LookupField) -> str | None:
    return record.append_id if by is LookupField.APPEND_ID else record.projection.get("AmendmentID")
