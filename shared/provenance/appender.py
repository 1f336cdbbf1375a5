"""The appender of one chain: takes what waits, seals it from the tip, and stores it whatever the store's fate."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.metrics import count, measure
from shared.observability.tracing import batch_span
from shared.provenance.hash_rule import genesis_hash
from shared.provenance.head_checks import reject_forged_head, reject_future_tip
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    ChainStore,
    Lookup,
    OutcomeUnknownError,
    Tip,
    TipMovedError,
)
from shared.provenance.records import RecordDraft, seal_record
from shared.timestamps import rfc3339

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

FIRST_BACKOFF_SECONDS: Final = 0.005
LONGEST_BACKOFF_SECONDS: Final = 2.0
FIND_AT_ONCE: Final = 100

_LOG = logs.get_logger("provenance")

type Check = Callable[[], Awaitable[None]]
type Tips = OrderedDict[ChainKey, Tip]


class AppendResult(NamedTuple):
    """What came of an append.

    Attributes:
        record: as it is stored.
        repeated: the append id was stored before; nothing was appended now.
    """

    record: ChainRecord
    repeated: bool


@dataclass(slots=True, eq=False)
class PendingAppend:
    """An append that waits or is under way.

    Attributes:
        draft: what the record is made of.
        append_id: unique in the chain.
        future: what the caller awaits.
        look_up: whether the append id may be in the chain already.
        check: refuses by raising; see :meth:`ChainLog.append`.
        exclusive: at most one of these rides in a batch.
        caller: the span that waits for it, None where none does.
        sent: whether the store may have it from an earlier attempt of this process.
    """

    draft: RecordDraft
    append_id: str
    future: asyncio.Future[AppendResult]
    look_up: bool
    check: Check | None
    exclusive: str
    caller: "SpanContext | None" = None
    sent: bool = False

    def is_abandoned(self) -> bool:
        """Tell whether nobody waits for it and nothing of it was sent."""
        return self.future.done() and not self.sent

    @property
    def claims(self) -> list[tuple[str, str]]:
        """What no two entries of a batch may have in common; an append id that was made here is its own."""
        claims = [("append", self.append_id)] if self.look_up else []
        return [*claims, ("exclusive", self.exclusive)] if self.exclusive else claims

    def succeed(self, record: ChainRecord, *, repeated: bool) -> None:
        """Hand the record to the caller, if it still waits."""
        if not self.future.done():
            self.future.set_result(AppendResult(record, repeated))

    def fail(self, error: BaseException) -> None:
        """Hand the error to the caller, if it still waits."""
        if not self.future.done():
            self.future.set_exception(error)


class Appender:
    """Appends what is put into ``waiting`` until nothing is left; see :class:`ChainLog` for the arguments."""

    def __init__(
        self,
        store: ChainStore,
        chain: ChainKey,
        workspace: str,
        tips: Tips,
        clock: Callable[[], datetime],
        jitter: Callable[[], float],
        give_up_seconds: float,
    ) -> None:
        self.chain = chain
        self.waiting: deque[PendingAppend] = deque()
        self._store = store
        self._genesis = genesis_hash(workspace, chain.target, chain.scope_key)
        self._tips = tips
        self._clock = clock
        self._jitter = jitter
        self._give_up_seconds = give_up_seconds

    async def run(self) -> None:
        """Work until nothing waits."""
        batch: list[PendingAppend] = []
        try:
            while self.waiting:
                await self._ready()
                batch = self._take()
                told = {"workspace.chain.target": self.chain.target.value, "workspace.chain.records": len(batch)}
                with batch_span("append a batch to an audit chain", [entry.caller for entry in batch], told):
                    await self._store_all(batch)
                batch = []
        except asyncio.CancelledError:
            for entry in (*batch, *self.waiting):
                entry.future.cancel()
            raise
        except Exception as error:
            _fail_all([*batch, *self.waiting], error)
            raise

    async def _ready(self) -> None:
        """Know the tip, and provision the chain before its first record is taken from the queue."""
        try:
            tip = await self._tip()
            if tip.sequence == 0:
                await self._store.provision(self.chain)
        except Exception as error:  # noqa: BLE001  whatever it is, those who wait must hear of it
            waiting = list(self.waiting)
            self.waiting.clear()
            _fail_all(waiting, error)

    async def _tip(self) -> Tip:
        tip = self._tips.get(self.chain)
        if tip is None:
            tip = await self._store.tip(self.chain)
            await reject_forged_head(self._store, self.chain, tip, rfc3339(self._clock()))
            self._keep(tip)
        return tip

    def _keep(self, tip: Tip) -> None:
        self._tips[self.chain] = tip
        self._tips.move_to_end(self.chain)

    def _take(self) -> list[PendingAppend]:
        """Take what fits in one batch from the queue, in order; drop those whose callers are gone."""
        batch: list[PendingAppend] = []
        later: list[PendingAppend] = []
        claimed: set[tuple[str, str]] = set()
        waiting, weight = self.waiting, 0
        most, heaviest = self._store.max_batch_records, self._store.max_batch_weight
        while waiting and len(batch) < most:
            entry = waiting[0]
            weight += entry.draft.size
            if batch and weight > heaviest:
                break
            waiting.popleft()
            if entry.is_abandoned():
                continue
            if not (entry.look_up or entry.exclusive):
                batch.append(entry)
            elif claimed.isdisjoint(entry.claims):
                claimed.update(entry.claims)
                batch.append(entry)
            else:
                later.append(entry)
        self.waiting.extendleft(reversed(later))
        return batch

    async def _store_all(self, batch: list[PendingAppend]) -> None:
        """Store a batch; every entry has its result or its error when this returns."""
        deadline = time.monotonic() + self._give_up_seconds
        attempt = 0
        try:
            while batch and not await self._attempt_or_wait(batch):
                if time.monotonic() > deadline:
                    _fail_all(
                        batch, WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "The audit log is busy.")
                    )
                    return
                attempt += 1
                await asyncio.sleep(self._jitter() * self._backoff(attempt))
        except Exception as error:  # noqa: BLE001  whatever it is, the callers must hear of it
            self._tips.pop(self.chain, None)
            _fail_all(batch, error)

    def _backoff(self, attempt: int) -> float:
        return min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(attempt, 20))

    async def _attempt_or_wait(self, batch: list[PendingAppend]) -> bool:
        """Try once; a store that does not answer is waited for while the outcome of an earlier attempt is unknown."""
        try:
            return await self._attempt(batch)
        except WorkspaceError as error:
            if error.kind is not Kind.UNAVAILABLE or not any(entry.sent for entry in batch):
                raise
            self._tips.pop(self.chain, None)
            return False

    async def _attempt(self, batch: list[PendingAppend]) -> bool:
        """Try once; False when it must be tried again. Entries that are done leave the batch."""
        tip = await self._tip()
        # Looking up after the tip is known makes the answer certain: what is appended in between moves the tip.
        await self._settle(batch)
        await self._ask(batch)
        batch[:] = [entry for entry in batch if not entry.is_abandoned()]
        if not batch:
            return True
        records = self._sealed(batch, tip)
        self._put_back(batch, len(records))
        try:
            self._keep(await self._store.append(self.chain, records, tip))
        except TipMovedError:
            count("workspace.chain.conflicts")
            self._tips.pop(self.chain, None)
            return False
        except OutcomeUnknownError as error:
            _LOG.warning("the outcome of an append is unknown; reading it back", extra=logs.fields(cause=str(error)))
            self._tips.pop(self.chain, None)
            for entry in batch:
                entry.sent = entry.look_up = True
            return False
        count("workspace.chain.appends", len(records))
        measure("workspace.chain.batch_size", len(records))
        for entry, record in zip(batch, records, strict=True):
            entry.succeed(record, repeated=False)
        return True

    async def _settle(self, batch: list[PendingAppend]) -> None:
        """Answer the entries whose append id is in the chain."""
        wanted = {entry.append_id: entry for entry in batch if entry.look_up and not entry.is_abandoned()}
        ids = list(wanted)
        for start in range(0, len(ids), FIND_AT_ONCE):
            found = await self._store.find(self.chain, Lookup.APPEND_ID, ids[start : start + FIND_AT_ONCE])
            for record in found:
                entry = wanted[record.append_id]
                entry.succeed(record, repeated=not entry.sent)
                batch.remove(entry)

    async def _ask(self, batch: list[PendingAppend]) -> None:
        """Let the checks of the entries refuse."""
        for entry in list(batch):
            if entry.check is None or entry.is_abandoned():
                continue
            try:
                await entry.check()
            except Exception as error:
                if isinstance(error, WorkspaceError) and error.kind is Kind.UNAVAILABLE:
                    raise
                entry.fail(error)
                batch.remove(entry)

    def _sealed(self, batch: Sequence[PendingAppend], tip: Tip) -> list[ChainRecord]:
        """Return the records of as many entries as fit in one append."""
        instant = self._clock()
        timestamp = rfc3339(instant)
        if tip.timestamp > timestamp:
            # Of another host's clock, or of this one's before it was set back.
            reject_future_tip(tip, instant)
            timestamp = tip.timestamp
        previous = tip.hash or self._genesis
        records: list[ChainRecord] = []
        weight = 0
        for sequence, entry in enumerate(batch, start=tip.sequence + 1):
            record = seal_record(entry.draft, sequence, timestamp, previous, entry.append_id)
            weight += self._store.weight(record.canonical)
            if records and weight > self._store.max_batch_weight:
                break
            records.append(record)
            previous = record.hash
        return records

    def _put_back(self, batch: list[PendingAppend], count: int) -> None:
        """Return the entries behind the first so many to the head of the queue."""
        self.waiting.extendleft(reversed(batch[count:]))
        del batch[count:]


def _fail_all(batch: Sequence[PendingAppend], error: Exception) -> None:
    unknown = WorkspaceError(
        Kind.UNAVAILABLE,
        "PROVENANCE_OUTCOME_UNKNOWN",
        "The store did not say whether the record was stored; repeat the request with the same Idempotency-Key.",
    )
    unknown.__cause__ = error
    for entry in batch:
        entry.fail(unknown if entry.sent else error)
