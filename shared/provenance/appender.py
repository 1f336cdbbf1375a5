"""Appender of one audit chain: stores waiting records in batches, links each to the previous one, retries conflicts."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.metrics import count, record_histogram_value
from shared.observability.tracing import open_batch_span
from shared.provenance.append_guards import reject_forged_head, reject_future_tip
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    ChainStore,
    LookupField,
    OutcomeUnknownError,
    Tip,
    TipMovedError,
)
from shared.provenance.records import RecordDraft, seal_record
from shared.provenance.signatures import CONFIRMATION_SECONDS
from shared.runtime import Runtime
from shared.timestamps import format_rfc3339

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

FIRST_BACKOFF_SECONDS: Final = 0.005
LONGEST_BACKOFF_SECONDS: Final = 2.0
FIND_AT_ONCE: Final = 100

_LOG = logs.get_logger("provenance")

type Check = Callable[[], Awaitable[None]]
type Tips = OrderedDict[ChainKey, Tip]


class AppendResult(NamedTuple):
    """Result of an append.

    Attributes:
        record: stored record.
        repeated: True if an earlier call with the same append id has stored the record.
    """

    record: ChainRecord
    repeated: bool


class BatchKey(NamedTuple):
    """Key that at most one append of a batch may have; its kind is ``append`` (the text is an id) or ``exclusive``."""

    kind: str
    text: str


@dataclass(slots=True, eq=False)
class PendingAppend:
    """Requested append of one audit record, which waits for its batch or is being stored.

    Attributes:
        draft: content of the record.
        append_id: id of the append, unique in the chain.
        future: future with the result for the caller.
        look_up: whether the append id is possibly already in the chain and must be searched there.
        check: raises an error to reject the append; None for no check. See :meth:`ChainLog.append`.
        confirm: like ``check``, but called directly before the write.
        exclusive: appends with the same text are never in one batch, see :meth:`ChainLog.append`; empty if there is no
            such restriction.
        caller: trace span of the caller, or None.
        sent: whether an earlier attempt of this process has possibly stored the record.
    """

    draft: RecordDraft
    append_id: str
    future: asyncio.Future[AppendResult]
    look_up: bool
    check: Check | None
    confirm: Check | None
    exclusive: str
    caller: "SpanContext | None" = None
    sent: bool = False

    def is_abandoned(self) -> bool:
        """Return whether the caller was cancelled before the append was sent to the store."""
        return self.future.done() and not self.sent

    @property
    def unique_keys(self) -> list[BatchKey]:
        """Keys that no two appends of a batch may share: ``exclusive``, and the append id if it is possibly stored."""
        keys = [BatchKey("append", self.append_id)] if self.look_up else []
        return [*keys, BatchKey("exclusive", self.exclusive)] if self.exclusive else keys

    def succeed(self, record: ChainRecord, *, repeated: bool) -> None:
        """Complete the append: give the stored record to the caller if the caller still waits."""
        if not self.future.done():
            self.future.set_result(AppendResult(record, repeated))

    def fail(self, error: BaseException) -> None:
        """End the append with an error, which the caller gets if the caller still waits."""
        if not self.future.done():
            self.future.set_exception(error)


class Appender:
    """Appends the records of one audit chain.

    Args:
        store: store of the chain.
        chain: chain to append to.
        workspace: the workspace's id.
        tips: cached tips of all chains in this process.
        give_up_seconds: time limit in seconds for retries of a batch after conflicts and unknown outcomes.
        runtime: clock, randomness and threads.

    Attributes:
        waiting: queue of appends that are not in a batch yet.
    """

    def __init__(
        self,
        store: ChainStore,
        chain: ChainKey,
        workspace: str,
        tips: Tips,
        give_up_seconds: float,
        *,
        runtime: Runtime,
    ) -> None:
        self.chain = chain
        self.waiting: deque[PendingAppend] = deque()
        self._store = store
        self._genesis = compute_genesis_hash(workspace, chain.target, chain.scope_key)
        self._tips = tips
        self._give_up_seconds = give_up_seconds
        self._runtime = runtime

    async def run(self) -> None:
        """Store the appends of the queue in batches until the queue is empty."""
        batch: list[PendingAppend] = []
        try:
            while self.waiting:
                await self._load_tip_or_provision_chain()
                batch = self._remove_next_batch()
                attributes = {"workspace.chain.target": self.chain.target.value, "workspace.chain.records": len(batch)}
                with open_batch_span("append a batch to an audit chain", [entry.caller for entry in batch], attributes):
                    await self._store_batch_with_retries(batch)
                batch = []
        except asyncio.CancelledError:
            for entry in (*batch, *self.waiting):
                entry.future.cancel()
            raise
        except Exception as error:
            _fail_all([*batch, *self.waiting], error)
            raise

    async def _load_tip_or_provision_chain(self) -> None:
        """Read the tip (number and hash of the last record) of the chain; prepare the store if the chain is empty.

        If this fails, all waiting callers get the error.
        """
        try:
            tip = await self._read_tip()
            if tip.sequence == 0:
                await self._store.provision(self.chain)
        except Exception as error:  # noqa: BLE001  every waiting caller must receive the error
            waiting = list(self.waiting)
            self.waiting.clear()
            _fail_all(waiting, error)

    async def _read_tip(self) -> Tip:
        tip = self._tips.get(self.chain)
        if tip is None:
            tip = await self._store.read_tip(self.chain)
            await reject_forged_head(self._store, self.chain, tip, format_rfc3339(self._runtime.now()), self._runtime)
            self._cache_tip(tip)
        return tip

    def _cache_tip(self, tip: Tip) -> None:
        self._tips[self.chain] = tip
        self._tips.move_to_end(self.chain)

    def _remove_next_batch(self) -> list[PendingAppend]:
        """Remove the next batch of appends from the queue and return it, in the order of the queue.

        Appends whose caller was cancelled are removed, too, but are not returned.
        """
        batch: list[PendingAppend] = []
        later: list[PendingAppend] = []
        used_keys: set[BatchKey] = set()
        waiting, batch_bytes = self.waiting, 0
        max_records, max_bytes = self._store.max_batch_records, self._store.max_batch_bytes
        while waiting and len(batch) < max_records:
            entry = waiting[0]
            batch_bytes += entry.draft.size
            if batch and batch_bytes > max_bytes:
                break
            waiting.popleft()
            if entry.is_abandoned():
                continue
            if not (entry.look_up or entry.exclusive):
                batch.append(entry)
            elif used_keys.isdisjoint(entry.unique_keys):
                used_keys.update(entry.unique_keys)
                batch.append(entry)
            else:
                later.append(entry)
        self.waiting.extendleft(reversed(later))
        return batch

    async def _store_batch_with_retries(self, batch: list[PendingAppend]) -> None:
        """Store a batch of appends, with retries, and give each caller its record or its error."""
        deadline = self._runtime.monotonic() + self._give_up_seconds
        attempt = 0
        try:
            while batch and not await self._try_to_store_batch_and_handle_outage(batch):
                if self._runtime.monotonic() > deadline:
                    _fail_all(
                        batch,
                        WorkspaceError(
                            Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log is overloaded; retry later."
                        ),
                    )
                    return
                attempt += 1
                await self._runtime.sleep(self._runtime.uniform(0, self._compute_backoff_seconds(attempt)))
        except Exception as error:  # noqa: BLE001  every caller must receive the error
            self._tips.pop(self.chain, None)
            _fail_all(batch, error)

    def _compute_backoff_seconds(self, attempt: int) -> float:
        return min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(attempt, 20))

    async def _try_to_store_batch_and_handle_outage(self, batch: list[PendingAppend]) -> bool:
        """Try once to store a batch; return False if the caller must try again.

        If the store is unavailable, return False if an earlier attempt has possibly stored records; otherwise raise the
        error.
        """
        try:
            return await self._try_to_store_batch(batch)
        except WorkspaceError as error:
            if error.kind is not Kind.UNAVAILABLE or not any(entry.sent for entry in batch):
                raise
            self._tips.pop(self.chain, None)
            return False

    async def _try_to_store_batch(self, batch: list[PendingAppend]) -> bool:
        """Try once to store a batch; return False if another process has appended a record or the outcome is unknown.

        Also return False if the confirmations took so long that the first of them can be outdated. Appends that are
        already stored, rejected or abandoned are removed from the batch.
        """
        tip = await self._read_tip()
        # The look-up must follow the read of the tip: a later append moves the tip, so that this attempt fails.
        await self._complete_stored_appends(batch)
        await self._run_checks(batch)
        confirmed_at = self._runtime.monotonic()
        await self._run_confirmations(batch)
        if self._runtime.monotonic() - confirmed_at > CONFIRMATION_SECONDS:
            return False
        batch[:] = [entry for entry in batch if not entry.is_abandoned()]
        if not batch:
            return True
        records = self._seal_records(batch, tip)
        self._return_rest_of_batch_to_queue(batch, len(records))
        try:
            self._cache_tip(await self._store.append(self.chain, records, tip))
        except TipMovedError:
            count("workspace.chain.conflicts")
            self._tips.pop(self.chain, None)
            return False
        except OutcomeUnknownError as error:
            _LOG.warning("the outcome of an append is unknown; looking it up", extra=logs.fields(cause=str(error)))
            self._tips.pop(self.chain, None)
            for entry in batch:
                entry.sent = entry.look_up = True
            return False
        count("workspace.chain.appends", len(records))
        record_histogram_value("workspace.chain.batch_size", len(records))
        for entry, record in zip(batch, records, strict=True):
            entry.succeed(record, repeated=False)
        return True

    async def _complete_stored_appends(self, batch: list[PendingAppend]) -> None:
        """Complete the appends whose append id is already in the chain, and remove them from the batch."""
        wanted = {entry.append_id: entry for entry in batch if entry.look_up and not entry.is_abandoned()}
        ids = list(wanted)
        for start in range(0, len(ids), FIND_AT_ONCE):
            found = await self._store.find(self.chain, LookupField.APPEND_ID, ids[start : start + FIND_AT_ONCE])
            for record in found:
                entry = wanted[record.append_id]
                entry.succeed(record, repeated=not entry.sent)
                batch.remove(entry)

    async def _run_checks(self, batch: list[PendingAppend]) -> None:
        """Call the check of each append in a batch; end and remove the appends whose check raises an error.

        If a check raises an error UNAVAILABLE, the attempt ends for the whole batch: raise the error.
        """
        for entry in list(batch):
            if entry.check is None or entry.is_abandoned():
                continue
            try:
                await entry.check()
            except Exception as error:
                if isinstance(error, WorkspaceError) and error.kind is Kind.UNAVAILABLE:
                    raise
                await self._end_rejected_append(entry, error)
                batch.remove(entry)

    async def _run_confirmations(self, batch: list[PendingAppend]) -> None:
        """Call ``confirm`` of the appends in a batch; end and remove the appends for which it raises an error."""
        confirmations = [
            (entry, entry.confirm) for entry in batch if entry.confirm is not None and not entry.is_abandoned()
        ]
        errors = await asyncio.gather(*(confirm() for _, confirm in confirmations), return_exceptions=True)
        for (entry, _), error in zip(confirmations, errors, strict=True):
            if error is not None:
                await self._end_rejected_append(entry, _convert_cancellation(error))
                batch.remove(entry)

    async def _end_rejected_append(self, entry: PendingAppend, error: Exception) -> None:
        """End an append whose check or confirmation raised ``error``: give its caller the stored record or an error.

        - If the chain contains the append id, the caller gets the stored record. An earlier attempt, or the same
          request in another process, has stored it. The check possibly failed because of this record.
        - Otherwise, if an earlier attempt can still store the record, the caller gets an error with unknown outcome.
        - Otherwise, the caller gets ``error``.
        """
        stored = await self._store.find(self.chain, LookupField.APPEND_ID, [entry.append_id]) if entry.look_up else ()
        if stored:
            entry.succeed(stored[0], repeated=not entry.sent)
        else:
            _fail_all([entry], error)

    def _seal_records(self, batch: Sequence[PendingAppend], tip: Tip) -> list[ChainRecord]:
        """Build the records of the first appends of a batch, as many as the store accepts in one write.

        Each record gets its sequence number, time, PreviousHash and Hash.
        """
        instant = self._runtime.now()
        timestamp = format_rfc3339(instant)
        if tip.timestamp > timestamp:
            # The clock of another host is ahead, or this host's clock was set back.
            reject_future_tip(tip, instant)
            timestamp = tip.timestamp
        previous = tip.hash or self._genesis
        records: list[ChainRecord] = []
        batch_bytes = 0
        for sequence, entry in enumerate(batch, start=tip.sequence + 1):
            record = seal_record(entry.draft, sequence, timestamp, previous, entry.append_id)
            batch_bytes += self._store.measure_bytes_in_batch(record.canonical)
            if records and batch_bytes > self._store.max_batch_bytes:
                break
            records.append(record)
            previous = record.hash
        return records

    def _return_rest_of_batch_to_queue(self, batch: list[PendingAppend], kept_count: int) -> None:
        """Move all appends of a batch after the first ``kept_count`` back to the front of the queue."""
        self.waiting.extendleft(reversed(batch[kept_count:]))
        del batch[kept_count:]


def _convert_cancellation(error: BaseException) -> Exception:
    """Return the error for the caller of a confirmation that raised ``error``.

    It can be a CancelledError, if the confirmation awaited a task that was cancelled. Nobody cancelled the caller.
    """
    if isinstance(error, Exception):
        return error
    detail = "The record was not stored, because its confirmation was cancelled; retry later."
    unavailable = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", detail)
    unavailable.__cause__ = error
    return unavailable


def _fail_all(batch: Sequence[PendingAppend], error: BaseException) -> None:
    unknown = WorkspaceError(
        Kind.UNAVAILABLE,
        "PROVENANCE_OUTCOME_UNKNOWN",
        "The outcome of the append is unknown; repeat the request with the same Idempotency-Key.",
    )
    unknown.__cause__ = error
    for entry in batch:
        entry.fail(unknown if entry.sent else error)
