"""The engine that appends: one appender a chain and process, group commit, every record once."""

import asyncio
import contextvars
import itertools
import random
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability.tracing import call_span, current_span_context
from shared.provenance.appender import Appender, AppendResult, Check, PendingAppend, Tips
from shared.provenance.ports import ChainKey, ChainStore, Target
from shared.provenance.records import RecordDraft, draft_event, parse_record
from shared.timestamps import now

MAX_QUEUED_BYTES: Final = 64_000_000
KNOWN_TIPS: Final = 1_000
_RUN_ID_BYTES: Final = 12
_FIRST_NUMBER: Final = 10**11
"""Numbers from here on have the same length, so that they sort as text."""


class ChainLog:
    """Appends to chains.

    Appends that arrive while a batch of the same chain is in flight ride in the next one. A caller that is cancelled
    before its record was sent to the store leaves nothing behind; later, the append completes without it.

    Args:
        store: keeps the chains.
        workspace: gives the workspace's id, which each chain starts from.
        clock: gives the current instant.
        jitter: gives a number from 0 to 1, for backoff.
        give_up_seconds: how long an append is tried against conflicts and unknown outcomes.
        max_queued_bytes: canonical bytes that may wait in this process; beyond, callers are told to come again.
    """

    def __init__(
        self,
        store: ChainStore,
        workspace: Callable[[], Awaitable[str]],
        *,
        clock: Callable[[], datetime] = now,
        jitter: Callable[[], float] = random.random,
        give_up_seconds: float = 60,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._jitter = jitter
        self._give_up_seconds = give_up_seconds
        self._max_queued_bytes = max_queued_bytes
        self._queued_bytes = 0
        self._run_id = secrets.token_urlsafe(_RUN_ID_BYTES)
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._tips: Tips = OrderedDict()
        self._appenders: dict[ChainKey, Appender] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(
        self,
        chain: ChainKey,
        draft: RecordDraft,
        *,
        append_id: str = "",
        check: Check | None = None,
        exclusive: str = "",
    ) -> AppendResult:
        """Append one record; when this returns, it is stored durably, once.

        Args:
            chain: which chain; its first record makes it.
            draft: what the record is made of.
            append_id: unique in the chain: the same id again returns the record already stored. Empty: this append
                is known to be new.
            check: asked again for each attempt; what it reads of the chain is certain to hold when the record is
                stored, since anything appended in between refuses the attempt. It raises to refuse.
            exclusive: of the appends with the same text at most one rides in a batch, so that ``check`` sees
                the others.

        Raises:
            WorkspaceError: UNAVAILABLE: ``PROVENANCE_UNAVAILABLE`` nothing was stored, ``PROVENANCE_BUSY`` too much
                waits, ``PROVENANCE_OUTCOME_UNKNOWN`` the record may be stored: repeat with the same append id; and what
                ``check`` raises.
        """
        if self._queued_bytes + draft.size > self._max_queued_bytes:
            detail = "More appends wait than the audit log takes; try again."
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_BUSY", detail, retryAfter=1)
        future: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        entry = PendingAppend(draft, append_id or self._new_id(), future, bool(append_id), check, exclusive)
        self._queued_bytes += draft.size
        try:
            with call_span("append to an audit chain", {"workspace.chain.target": chain.target.value}, kind="INTERNAL"):
                appender = self._appenders.get(chain) or self._started(chain, await self._workspace())
                entry.caller = current_span_context()
                appender.waiting.append(entry)
                return await future
        finally:
            self._queued_bytes -= draft.size

    async def close(self) -> None:
        """Finish the appends that were taken, and close the store."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._store.close()

    def _new_id(self) -> str:
        """Return an append id; those of one process sort together, which spares an index its random writes."""
        return self._run_id + str(next(self._numbers))

    def _started(self, chain: ChainKey, workspace: str) -> Appender:
        """Return the chain's appender, which runs until nothing waits; somebody else may just have started it."""
        appender = self._appenders.get(chain)
        if appender is None:
            appender = self._appenders[chain] = Appender(
                self._store, chain, workspace, self._tips, self._clock, self._jitter, self._give_up_seconds
            )
            # An empty context: the task serves many requests and must not log the id of the first.
            task = asyncio.get_running_loop().create_task(self._run(appender), context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return appender

    async def _run(self, appender: Appender) -> None:
        try:
            await appender.run()
        finally:
            # Nothing is awaited between the last look at the queue and here, so that no entry can be left behind.
            del self._appenders[appender.chain]
            while len(self._tips) > KNOWN_TIPS:
                self._tips.popitem(last=False)


class EventLog:
    """Appends events to chains; what other domains see of the audit log.

    Args:
        log: the engine.
    """

    def __init__(self, log: ChainLog) -> None:
        self.log = log

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one event, or return the record that this append id already made."""
        appended = await self.write(ChainKey(target, scope_key), user_id, event, append_id=append_id)
        return parse_record(appended.record.canonical, appended.record.hash)

    async def write(
        self, chain: ChainKey, user_id: str, event: Mapping[str, Any], *, append_id: str = ""
    ) -> AppendResult:
        """Append one event.

        Args:
            chain: which chain.
            user_id: the acting principal.
            event: see :meth:`AuditLog.append`; other members are dropped.
            append_id: the same id again returns the record already stored; empty for an event known to be new.

        Raises:
            WorkspaceError: of the body (INVALID, TOO_LARGE), and what :meth:`ChainLog.append` raises.
        """
        return await self.log.append(chain, draft_event(user_id, event), append_id=append_id)

    async def close(self) -> None:
        """Finish the appends that were taken, and close the store."""
        await self.log.close()
