"""Verification of a stored audit chain: all records, the head item and the newest checkpoint.

The rules for records are in ``chain_verification``, which has no I/O.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from shared.errors import Kind, WorkspaceError
from shared.fair_use.principal_slots import PrincipalSlots
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count, record_histogram_value
from shared.provenance.canonical import parse_json_if_canonical, try_canonicalise_record
from shared.provenance.chain_verification import (
    ChainFault,
    ChainVerification,
    build_fork_fault,
    find_sequence_with_same_predecessor,
)
from shared.provenance.checkpoint_ports import StoredCheckpoint
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import compute_genesis_hash, compute_record_hash, format_record_id
from shared.provenance.head_checks import find_future_time_fault, find_head_fault, find_orphan_fault
from shared.provenance.notes import CheckpointContent, NoteError
from shared.provenance.overview_ports import ChainOverview, StoredVerdict
from shared.provenance.parallel_verification import DEFAULT_PARALLEL, ParallelOptions, verify_records_up_to
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, MisplacedRecords, Target, Tip
from shared.provenance.records import (
    build_damaged_record_placeholder,
    format_record_count,
    parse_record,
    try_normalise_record,
)
from shared.provenance.signature_checks import find_signature_hash_fault
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

_LOG = get_logger("verification")
VERIFY_SECONDS: Final = 200.0
VERIFICATIONS_PER_PRINCIPAL: Final = 2
"""Maximum number of verifications of one principal that an instance runs at once.

A verification reads the whole chain and uses a worker thread and the store for minutes.
"""
SLOT_SECONDS: Final = 10.0
"""Maximum time in seconds that a verification waits for others of its principal: a request has 230 s on Azure."""
PAGE_RECORDS: Final = 1_000
PAGE_BYTES: Final = 8_000_000
MAX_BRANCHES: Final = 10
"""Maximum number of records after the head item that are checked for forks; each check can read the whole chain."""


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """Result of the verification of a chain.

    Attributes:
        chain_valid: whether the whole chain is valid.
        empty: True if the chain has no records.
        fork_detected: True if two different records have the same PreviousHash.
        reason: description of the result.
        broken_at: place of the first fault: RecordID of a record, Hash of the second record of a fork, or name of a
            checkpoint; None for a valid chain.
        valid: whether the requested record matches its stored hash; None if no record was requested.
        record: requested record; None if no record was requested.
        recomputed_hash: digest of the canonical form of the requested record; None if no record was requested, or the
            record has no canonical form.
    """

    chain_valid: bool
    empty: bool
    fork_detected: bool
    reason: str
    broken_at: str | None = None
    valid: bool | None = None
    record: Mapping[str, Any] | None = None
    recomputed_hash: str | None = None

    def to_reply_json(self, chain: ChainKey) -> dict[str, Any]:
        """Convert the result of a verification to the JSON object of the API's reply."""
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


@dataclass(slots=True)
class VerificationRun:
    """Verification of a chain that can be continued in steps.

    Attributes:
        chain: chain to verify.
        started_at: start of the verification, RFC 3339 in UTC with microseconds.
        newest: newest checkpoint of the chain; None if it has none.
        checkpoint_content: content of this checkpoint; None if the chain has no checkpoint, or it is not trusted.
        error: reason why the checkpoint is not trusted; None if the chain has no checkpoint, or it is trusted.
        tip: number and hash of the chain's last record at the start, as its head item states them.
        verification: state of the verification of the records.
        misplaced: lowest valid sequence number after the first record with an invalid sequence number; the verification
            ends before this number. None if all sequence numbers are valid.
        end: last sequence number to verify.
    """

    chain: ChainKey
    started_at: str
    newest: StoredCheckpoint | None
    checkpoint_content: CheckpointContent | None
    error: NoteError | None
    tip: Tip
    verification: ChainVerification
    misplaced: int | None
    end: int


class _OpenedCheckpoint(NamedTuple):
    """Content of a trusted checkpoint, or the reason why it is not trusted; neither if the chain has no checkpoint."""

    content: CheckpointContent | None = None
    error: NoteError | None = None


class ChainVerifier:
    """Verifies stored audit chains.

    Args:
        store: store of the chains.
        workspace: returns the workspace's id.
        checkpoints: reads signed checkpoints; None to check no checkpoint.
        overview: stores the results of complete verifications; None to store no results.
        seconds: time limit of a verification in seconds.
        parallel: options of parallel verification.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: ChainStore,
        workspace: Callable[[], Awaitable[str]],
        checkpoints: Checkpoints | None = None,
        overview: ChainOverview | None = None,
        *,
        seconds: float = VERIFY_SECONDS,
        parallel: ParallelOptions = DEFAULT_PARALLEL,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._checkpoints = checkpoints
        self._overview = overview
        self._seconds = seconds
        self._parallel = parallel
        self._runtime = runtime
        detail = (
            f"An instance verifies {VERIFICATIONS_PER_PRINCIPAL} chains of a principal at once, and your earlier "
            "verifications did not end in time; retry later."
        )
        self._slots = PrincipalSlots(VERIFICATIONS_PER_PRINCIPAL, detail)

    async def verify_for_principal(
        self, principal_id: str, chain: ChainKey, requested_sequence: int | None = None
    ) -> ChainVerdict:
        """Wait until fewer than two verifications of the principal are running, then verify a chain (:meth:`verify`).

        Args:
            principal_id: member id of the principal that requests the verification.
            chain: as in :meth:`verify`.
            requested_sequence: as in :meth:`verify`.

        Raises:
            WorkspaceError: THROTTLED ``THROTTLED`` if earlier verifications of the principal do not end within
                :data:`SLOT_SECONDS`; and the errors of :meth:`verify`.
        """
        async with self._slots.occupy_slot(principal_id, SLOT_SECONDS):
            started = self._runtime.monotonic()
            verdict = await self.verify(chain, requested_sequence)
            seconds = self._runtime.monotonic() - started
            record_histogram_value("workspace.chain.verify.duration", seconds, sound=verdict.chain_valid)
            return verdict

    async def verify(self, chain: ChainKey, requested_sequence: int | None = None) -> ChainVerdict:
        """Verify a chain from its genesis hash to its last record (tip), and store the result.

        For a valid chain, the cached roots of Merkle subtrees are then repaired, if the time limit allows it.

        Args:
            chain: chain to verify; a chain that does not exist is valid and empty.
            requested_sequence: sequence number of a record whose digest is recomputed, too; None for no record.

        Raises:
            WorkspaceError: NOT_FOUND ``RECORD_NOT_FOUND`` if the requested record does not exist; TIMEOUT
                ``VERIFY_TIMEOUT`` if the time limit is exceeded; UNAVAILABLE if a store does not respond.
        """
        try:
            async with asyncio.timeout(self._seconds) as limit:
                record = None if requested_sequence is None else await self._require_record(chain, requested_sequence)
                run = await self.start(chain)
                verdict = await self._verify_chain_and_store_result(run, record)
        except TimeoutError:
            detail = f"The chain could not be verified within {self._seconds:g} s; export it and verify it offline."
            raise WorkspaceError(Kind.TIMEOUT, "VERIFY_TIMEOUT", detail) from None
        try:
            async with asyncio.timeout_at(limit.when()):
                await self.repair_subtree_roots(run, verdict)
        except TimeoutError:
            _LOG.warning("the subtree roots of a chain could not be checked in time", extra=fields(target=chain.target))
        return verdict

    async def _require_record(self, chain: ChainKey, sequence: int) -> ChainRecord:
        page = await self._store.read(chain, sequence - 1, limit=1, max_bytes=1)
        if not page.records or page.records[0].sequence != sequence:
            raise WorkspaceError(
                Kind.NOT_FOUND, "RECORD_NOT_FOUND", f"The chain has no record {format_record_id(sequence)}."
            )
        return page.records[0]

    async def _verify_chain_and_store_result(self, run: VerificationRun, record: ChainRecord | None) -> ChainVerdict:
        await self.verify_next_records_and_check_end(run, run.end)
        verdict = await self.finish(run)
        await self.store_result(run, verdict)
        if record is None:
            return verdict
        return await self._runtime.run_in_thread_if_large(len(record.canonical), add_record_verdict, verdict, record)

    async def start(self, chain: ChainKey) -> VerificationRun:
        """Start a verification that has no time limit.

        Continue it with :meth:`verify_next_records_and_check_end`, and end it with :meth:`finish`.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond.
        """
        started_at = format_rfc3339(self._runtime.now())
        # In this order, appends during the reads cannot make a checkpoint newer than the head item, or the head item
        # newer than the records.
        newest = await self._checkpoints.find_newest(chain) if self._checkpoints else None
        content, error = await self._verify_checkpoint_or_get_error(chain, newest)
        tip = await self._store.read_tip(chain)
        verification = ChainVerification(
            compute_genesis_hash(await self._workspace(), chain.target, chain.scope_key), content.size if content else 0
        )
        # Records that are appended during the verification are not included.
        misplaced = (
            await self._store.find_sequence_after_misplaced_record(chain)
            if isinstance(self._store, MisplacedRecords)
            else None
        )
        end = tip.sequence if misplaced is None else min(tip.sequence, misplaced - 1)
        return VerificationRun(chain, started_at, newest, content, error, tip, verification, misplaced, end)

    async def verify_next_records_and_check_end(self, run: VerificationRun, max_records: int) -> bool:
        """Verify the next records of a chain; return True after the last record, or after a fault.

        Args:
            run: verification from :meth:`start`.
            max_records: maximum number of records to verify; after a gap in the chain, more records are read.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        before = run.verification.sequence
        last = min(run.end, before + max_records)
        await verify_records_up_to(
            self._store, run.chain, run.verification, last, self._parallel, runtime=self._runtime
        )
        if run.verification.sequence < last < run.end:
            # The fault of a gap is the first record after it, which can be past this range.
            await verify_records_up_to(
                self._store, run.chain, run.verification, run.end, self._parallel, runtime=self._runtime
            )
            return True
        return run.verification.sequence in (before, run.end) or run.verification.fault is not None

    async def finish(self, run: VerificationRun) -> ChainVerdict:
        """Check the end of a chain whose records are verified, and return the result for the whole chain.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond.
        """
        chain, verification = run.chain, run.verification
        fault = await self._convert_to_fork_fault_if_fork(
            chain, verification, verification.fault
        ) or await find_future_time_fault(self._store, chain, verification, self._runtime.now())
        fault = fault or await self._find_fault_at_end(chain, verification, run.tip, run.misplaced)
        forked = verification.fork is not None or (fault is not None and fault.is_fork)
        fault = (
            fault
            or verification.fork
            or _find_checkpoint_fault(verification, run.newest, run.checkpoint_content, run.error)
        )
        fault = fault or await find_head_fault(self._store, chain, run.tip, self._runtime)
        fault = fault or await self._find_signature_fault(chain, verification)
        empty = not verification.sequence and fault is None
        if fault is not None:
            count("workspace.chain.broken", target=chain.target.value)
            _LOG.error(
                "an audit chain is broken",
                extra=fields(target=chain.target, scopeKey=chain.scope_key, brokenAt=fault.broken_at),
            )
        return _build_verdict(fault, empty=empty, forked=forked, record_count=verification.sequence)

    async def store_result(self, run: VerificationRun, verdict: ChainVerdict) -> None:
        """Store the result of a complete verification; see :func:`store_verification_result`.

        The time of a valid result is the start of the verification. If a new period of the background verification
        began meanwhile, the chain is then still due in the new period. A failure of the store is only logged, because
        the caller gets the result anyway.

        Args:
            run: verification that has ended.
            verdict: its result.
        """
        if self._overview is None:
            return
        verified_at = run.started_at if verdict.chain_valid else format_rfc3339(self._runtime.now())
        try:
            await store_verification_result(self._overview, run, verdict, verified_at)
        except WorkspaceError:
            _LOG.warning("the result of a verification could not be stored", exc_info=True)

    async def repair_subtree_roots(self, run: VerificationRun, verdict: ChainVerdict) -> None:
        """Repair the cached roots of Merkle subtrees of a valid chain, from which proofs are built, if they are wrong.

        The repair reads all hashes of the chain, which can take long. Therefore, call :meth:`store_result` before this
        method. A failure of a store is only logged.

        Args:
            run: verification that has ended.
            verdict: its result; nothing is repaired if the chain is broken.
        """
        signed = run.checkpoint_content
        if signed is None or self._checkpoints is None or not verdict.chain_valid:
            return
        try:
            await self._checkpoints.trees.try_repair_roots(run.chain, signed.size, signed.root)
        except WorkspaceError:
            _LOG.warning("the subtree roots of a chain could not be checked", exc_info=True)

    async def _find_signature_fault(self, chain: ChainKey, verification: ChainVerification) -> ChainFault | None:
        first, last = verification.signed
        if not first or chain.target is not Target.DOMAIN_AMENDMENTS:
            return None
        return await find_signature_hash_fault(self._store, chain, first, last, self._runtime)

    async def _verify_checkpoint_or_get_error(
        self, chain: ChainKey, newest: StoredCheckpoint | None
    ) -> _OpenedCheckpoint:
        if newest is None or self._checkpoints is None:
            return _OpenedCheckpoint()
        try:
            return _OpenedCheckpoint(await self._checkpoints.verify_and_parse_checkpoint(chain, newest))
        except NoteError as error:
            return _OpenedCheckpoint(error=error)

    async def _convert_to_fork_fault_if_fork(
        self, chain: ChainKey, verification: ChainVerification, fault: ChainFault | None
    ) -> ChainFault | None:
        """Return the fault of a fork if the faulty record has the same PreviousHash as a valid record.

        In all other cases, return ``fault``, which is None for a chain without a fault.
        """
        if fault is None or not fault.previous_hash:
            return fault
        after = 0
        while after < verification.sequence:
            page = await self._store.read(chain, after, limit=PAGE_RECORDS, max_bytes=PAGE_BYTES)
            other = await self._runtime.run_in_thread(find_sequence_with_same_predecessor, page.records, fault)
            if not page.records or (other is not None and other <= verification.sequence):
                return build_fork_fault(fault.hash, other) if other is not None else fault
            after = page.records[-1].sequence
        return fault

    async def _find_fault_at_end(
        self, chain: ChainKey, verification: ChainVerification, tip: Tip, sequence_after_misplaced: int | None
    ) -> ChainFault | None:
        """Return the first fault at the end of a chain, or None.

        This method checks the head item, records after the last record that it states, misplaced records (with an
        invalid sequence number), and orphans (records that no head item includes).
        """
        if (
            sequence_after_misplaced is not None
            and verification.sequence + 1 == sequence_after_misplaced <= tip.sequence
        ):
            return _build_misplaced_record_fault(sequence_after_misplaced)
        if verification.sequence < tip.sequence:
            missing = format_record_id(verification.sequence + 1)
            counted = format_record_count(tip.sequence)
            return ChainFault(missing, f"{missing} is missing: the head item counts {counted}")
        if tip.sequence and tip.hash != verification.last_hash:
            last = format_record_id(tip.sequence)
            return ChainFault(last, f"the Hash of {last} differs from the Hash in the head item")
        beyond = await self._find_fault_beyond_head(chain, verification)
        if beyond is None and sequence_after_misplaced is not None:
            return _build_misplaced_record_fault(tip.sequence + 1)
        return beyond or await find_orphan_fault(self._store, chain, verification.genesis, tip)

    async def _find_fault_beyond_head(self, chain: ChainKey, verification: ChainVerification) -> ChainFault | None:
        """Return a fault if a record exists after the last one that the head item states.

        If there is no such record, return the fault of a fork that is already known, or None.

        A concurrent append advances the head item, so the head item is read again.
        """
        after = (await self._store.read_tip(chain)).sequence
        page = await self._store.read(chain, after, limit=PAGE_RECORDS, max_bytes=PAGE_BYTES)
        head = (await self._store.read_tip(chain)).sequence
        beyond_head = [record for record in page.records if record.sequence > head]
        for record in beyond_head[:MAX_BRANCHES]:
            fault = await self._convert_to_fork_fault_if_fork(
                chain, verification, _build_fault_beyond_head(record, verification.last_hash)
            )
            if fault is not None and fault.is_fork:
                verification.fork = verification.fork or fault
                break
        if not beyond_head or (verification.fork is not None and verification.fork.broken_at == beyond_head[0].hash):
            return verification.fork
        return _build_fault_beyond_head(beyond_head[0], verification.last_hash)


def _build_misplaced_record_fault(following_sequence: int) -> ChainFault:
    here = format_record_id(following_sequence)
    return ChainFault(here, f"a record with an invalid sequence number is stored before {here}")


def _build_fault_beyond_head(record: ChainRecord, last_hash: str) -> ChainFault:
    """Build the fault of a record after the last record that the head item states.

    The fault contains the record's PreviousHash if the record is possibly part of a fork.
    """
    here = format_record_id(record.sequence)
    value = parse_json_if_canonical(record.canonical)
    predecessor = value.get("PreviousHash") if type(value) is dict else None
    branch = predecessor if isinstance(predecessor, str) and predecessor != last_hash else ""
    return ChainFault(here, f"{here} is past the end of the chain according to the head item", branch, record.hash)


async def store_verification_result(
    overview: ChainOverview, run: VerificationRun, verdict: ChainVerdict, verified_at: str
) -> None:
    """Store the result of a complete verification in the summary of the chain; an empty chain has no summary.

    The result for a chain without a head item is stored only if the chain has a checkpoint. The reason: while the store
    contains orphans (records whose scope is unknown), the verification of every scope without a chain, even of one that
    never existed, finds a fault. These scopes must not get summaries.

    Args:
        overview: store of the summaries.
        run: verification that has ended.
        verdict: result of the verification.
        verified_at: time of the result, as in :class:`StoredVerdict`.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    if verdict.empty or (run.tip == Tip() and run.newest is None):
        return
    stored = StoredVerdict(verified_at, run.tip.sequence, verdict.chain_valid, verdict.broken_at or "", verdict.reason)
    await overview.save_verdict(run.chain, stored, run.started_at)


def _find_checkpoint_fault(
    verification: ChainVerification,
    newest: StoredCheckpoint | None,
    signed: CheckpointContent | None,
    error: NoteError | None,
) -> ChainFault | None:
    if newest is None:
        return None
    if signed is None:
        cause = error if newest.note else "it cannot be read"
        return ChainFault(newest.name, f"the newest checkpoint is not trusted: {cause}")
    if verification.sequence < signed.size:
        missing = format_record_id(verification.sequence + 1)
        covered = format_record_count(signed.size)
        return ChainFault(missing, f"{missing} is missing: checkpoint {newest.name} counts {covered}")
    if verification.tree.compute_root() != signed.root:
        return ChainFault(newest.name, f"checkpoint {newest.name} was signed for other records than those in the store")
    return None


def _build_verdict(fault: ChainFault | None, *, empty: bool, forked: bool, record_count: int) -> ChainVerdict:
    records = format_record_count(record_count)
    reason = fault.reason if fault else "nothing to check" if empty else f"{records}, all sound"
    return ChainVerdict(fault is None, empty, forked, reason, fault.broken_at if fault else None)


def add_record_verdict(verdict: ChainVerdict, record: ChainRecord) -> ChainVerdict:
    """Check the record that the caller requested, and add the result to the verdict of the chain.

    The record is valid if its Hash is the digest of its canonical form. A record without a canonical form is not valid;
    the verdict then contains the same placeholder that queries return for it.
    """
    form = try_canonicalise_record(record.canonical)
    recomputed = None if form is None else compute_record_hash(form)
    valid = recomputed == record.hash
    reason = verdict.reason
    if verdict.chain_valid and not valid:
        reason = f"{format_record_id(record.sequence)} does not match its stored Hash"
    normalized = try_normalise_record(record) or build_damaged_record_placeholder(record)
    reply_record = parse_record(normalized.canonical, normalized.hash)
    return replace(verdict, reason=reason, valid=valid, record=reply_record, recomputed_hash=recomputed)
