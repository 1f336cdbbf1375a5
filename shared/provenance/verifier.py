"""Verification of a stored chain: every link, the head item, the newest checkpoint."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.provenance.canonical import canonicalize_record, parse_if_canonical
from shared.provenance.chain_verification import ChainFault, ChainVerification, find_competing_record, fork_fault
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import digest, genesis_hash, record_id
from shared.provenance.head_checks import find_future_timestamps, find_head_time_mismatch, find_orphans
from shared.provenance.notes import Checkpoint, NoteError
from shared.provenance.parallel import DEFAULT_PARALLEL, ParallelOptions, verify_up_to
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, MisplacedRecords, StoredCheckpoint, Tip
from shared.provenance.records import build_placeholder, normalize_record, parse_record
from shared.timestamps import now
from shared.worker_threads import run_in_worker

_LOG = get_logger("verification")
VERIFY_SECONDS: Final = 200.0
PAGE_RECORDS: Final = 1_000
PAGE_BYTES: Final = 8_000_000
MAX_BRANCHES: Final = 10
"""Records past the head that are looked at for forks, each of which may take a walk of its own."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verification found; see :meth:`to_reply` for the names that callers see.

    Attributes:
        chain_valid: the whole chain is sound.
        empty: there was nothing to check.
        fork_detected: two records claim the same predecessor.
        reason: the verdict in words.
        broken_at: the first bad link: a RecordID, a record's Hash on a fork, or the blob name of a checkpoint.
        valid: whether the named record has its digest; None when none is named.
        record: the named record.
        recomputed_hash: digest of its canonical form; None also for what has no such form.
    """

    chain_valid: bool
    empty: bool
    fork_detected: bool
    reason: str
    broken_at: str | None = None
    valid: bool | None = None
    record: Mapping[str, Any] | None = None
    recomputed_hash: str | None = None

    def to_reply(self, chain: ChainKey) -> dict[str, Any]:
        """Return the verdict by the names of the interface."""
        return {
            "Valid": self.valid,
            "ChainValid": self.chain_valid,
            "Empty": self.empty,
            "Record": self.record,
            "RecomputedHash": self.recomputed_hash,
            "BrokenAt": self.broken_at,
            "ForkDetected": self.fork_detected,
            "Reason": self.reason,
            "Target": str(chain.target),
        }


class ChainVerifier:
    """Verifies chains.

    Args:
        store: keeps the chains.
        workspace: gives the workspace's id.
        checkpoints: the signed checkpoints; None where there are none.
        seconds: after which there is no verdict.
        parallel: how long chains are walked from both ends.
        clock: gives the current instant.
    """

    def __init__(
        self,
        store: ChainStore,
        workspace: Callable[[], Awaitable[str]],
        checkpoints: Checkpoints | None = None,
        *,
        seconds: float = VERIFY_SECONDS,
        parallel: ParallelOptions = DEFAULT_PARALLEL,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._checkpoints = checkpoints
        self._seconds = seconds
        self._parallel = parallel
        self._clock = clock

    async def verify(self, chain: ChainKey, named: int | None = None) -> Verdict:
        """Walk a chain from genesis to tip.

        Args:
            chain: which chain; one never written is sound and empty.
            named: sequence of a record whose digest is recomputed too.

        Raises:
            WorkspaceError: NOT_FOUND ``RECORD_NOT_FOUND``; TIMEOUT ``VERIFY_TIMEOUT``; the stores' UNAVAILABLE.
        """
        try:
            async with asyncio.timeout(self._seconds):
                record = None if named is None else await self._record(chain, named)
                return await self._verdict(chain, record)
        except TimeoutError:
            detail = f"The chain could not be verified within {self._seconds:g} s; export and verify it offline."
            raise WorkspaceError(Kind.TIMEOUT, "VERIFY_TIMEOUT", detail) from None

    async def _record(self, chain: ChainKey, sequence: int) -> ChainRecord:
        page = await self._store.read(chain, sequence - 1, limit=1, max_bytes=1)
        if not page.records or page.records[0].sequence != sequence:
            raise WorkspaceError(Kind.NOT_FOUND, "RECORD_NOT_FOUND", f"The chain has no record {record_id(sequence)}.")
        return page.records[0]

    async def _verdict(self, chain: ChainKey, record: ChainRecord | None) -> Verdict:
        # In this order the checkpoint can only lag behind the head, and the head behind the records.
        newest = await self._checkpoints.find_newest(chain) if self._checkpoints else None
        signed, distrust = await self._opened(chain, newest)
        tip = await self._store.tip(chain)
        walk = ChainVerification(
            genesis_hash(await self._workspace(), chain.target, chain.scope_key), signed.size if signed else 0
        )
        # What is appended meanwhile is left out.
        odd = await self._store.find_misplaced(chain) if isinstance(self._store, MisplacedRecords) else None
        end = tip.sequence if odd is None else min(tip.sequence, odd - 1)
        await verify_up_to(self._store, chain, walk, end, self._parallel)
        fault = await self._as_fork(chain, walk, walk.fault) or await find_future_timestamps(
            self._store, chain, walk, self._clock()
        )
        fault = fault or await self._end_fault(chain, walk, tip, odd)
        forked = walk.fork is not None or (fault is not None and fault.reason.startswith("fork"))
        fault = fault or walk.fork or _checkpoint_fault(walk, newest, signed, distrust)
        fault = fault or await find_head_time_mismatch(self._store, chain, tip)
        empty = not walk.sequence and fault is None
        if fault is not None:
            count("workspace.chain.broken", target=chain.target.value)
            _LOG.error(
                "an audit chain is broken",
                extra=fields(target=chain.target, scopeKey=chain.scope_key, brokenAt=fault.broken_at),
            )
        verdict = _build_verdict(fault, empty=empty, forked=forked, count=walk.sequence)
        return (
            verdict
            if record is None
            else await run_in_worker(len(record.canonical), add_record_verdict, verdict, record)
        )

    async def _opened(
        self, chain: ChainKey, newest: StoredCheckpoint | None
    ) -> tuple[Checkpoint | None, NoteError | None]:
        if newest is None or self._checkpoints is None:
            return None, None
        try:
            return await self._checkpoints.open(chain, newest), None
        except NoteError as error:
            return None, error

    async def _as_fork(self, chain: ChainKey, walk: ChainVerification, fault: ChainFault | None) -> ChainFault | None:
        """Return what was found; a record that does not link may be the start of another branch."""
        if fault is None or not fault.claims:
            return fault
        after = 0
        while after < walk.sequence:
            page = await self._store.read(chain, after, limit=PAGE_RECORDS, max_bytes=PAGE_BYTES)
            other = await asyncio.to_thread(find_competing_record, page.records, fault)
            if not page.records or (other is not None and other <= walk.sequence):
                return fork_fault(fault, other) if other is not None else fault
            after = page.records[-1].sequence
        return fault

    async def _end_fault(
        self, chain: ChainKey, walk: ChainVerification, tip: Tip, odd: int | None
    ) -> ChainFault | None:
        """Return how records and head item disagree, or what stands in no place behind the end of the walk."""
        if odd is not None and walk.sequence + 1 == odd <= tip.sequence:
            return _misplaced_fault(odd)
        if walk.sequence < tip.sequence:
            missing = record_id(walk.sequence + 1)
            return ChainFault(missing, f"{missing} is missing: the head item counts {tip.sequence} records")
        if tip.sequence and tip.hash != walk.last_hash:
            last = record_id(tip.sequence)
            return ChainFault(last, f"{last} does not have the Hash that the head item names")
        beyond = await self._beyond(chain, walk)
        if beyond is None and odd is not None:
            return _misplaced_fault(tip.sequence + 1)
        return beyond or await find_orphans(self._store, chain, walk.genesis, tip)

    async def _beyond(self, chain: ChainKey, walk: ChainVerification) -> ChainFault | None:
        """Return the fault of a record that no head counts; who appends meanwhile moves the head along."""
        after = (await self._store.tip(chain)).sequence
        page = await self._store.read(chain, after, limit=PAGE_RECORDS, max_bytes=PAGE_BYTES)
        counted = (await self._store.tip(chain)).sequence
        uncounted = [record for record in page.records if record.sequence > counted]
        for record in uncounted[:MAX_BRANCHES]:
            fault = await self._as_fork(chain, walk, _uncounted_fault(record, walk.last_hash))
            if fault is not None and fault.reason.startswith("fork"):
                walk.fork = walk.fork or fault
                break
        if not uncounted or (walk.fork is not None and walk.fork.broken_at == uncounted[0].hash):
            return walk.fork
        return _uncounted_fault(uncounted[0], walk.last_hash)


def _misplaced_fault(following: int) -> ChainFault:
    here = record_id(following)
    return ChainFault(here, f"a record that stands in no place of the chain stands before {here}")


def _uncounted_fault(record: ChainRecord, last_hash: str) -> ChainFault:
    """Return the fault of a record that no head counts; it may claim another predecessor than the chain's end."""
    here = record_id(record.sequence)
    value = parse_if_canonical(record.canonical)
    claims = value.get("PreviousHash") if type(value) is dict else None
    branch = claims if isinstance(claims, str) and claims != last_hash else ""
    return ChainFault(here, f"{here} stands beyond the end that the head item names", branch, record.hash)


def _checkpoint_fault(
    walk: ChainVerification, newest: StoredCheckpoint | None, signed: Checkpoint | None, distrust: NoteError | None
) -> ChainFault | None:
    if newest is None:
        return None
    if signed is None:
        return ChainFault(newest.name, f"the newest checkpoint is not to be trusted: {distrust}")
    if walk.sequence < signed.size:
        missing = record_id(walk.sequence + 1)
        return ChainFault(missing, f"{missing} is missing: checkpoint {newest.name} counts {signed.size} records")
    if walk.tree.root() != signed.root:
        return ChainFault(newest.name, f"the chain is not the one that checkpoint {newest.name} was signed for")
    return None


def _build_verdict(fault: ChainFault | None, *, empty: bool, forked: bool, count: int) -> Verdict:
    reason = fault.reason if fault else "nothing to check" if empty else f"{count} records, all sound"
    return Verdict(fault is None, empty, forked, reason, fault.broken_at if fault else None)


def add_record_verdict(verdict: Verdict, record: ChainRecord) -> Verdict:
    """Return the verdict on a chain with that on a named record, whose Hash must be the digest of its canonical form.

    The record is given as queries show it: where they show a stand-in, there is no such form.
    """
    form = canonicalize_record(record.canonical)
    recomputed = None if form is None else digest(form)
    valid = recomputed == record.hash
    reason = verdict.reason
    if verdict.chain_valid and not valid:
        reason = f"{record_id(record.sequence)} does not have the digest that is stored as its Hash"
    shown = normalize_record(record) or build_placeholder(record)
    given = parse_record(shown.canonical, shown.hash)
    return replace(verdict, reason=reason, valid=valid, record=given, recomputed_hash=recomputed)
