"""Log of all audit chains, with one appender for each chain; and the adapter by which other domains append events."""

import asyncio
import contextvars
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability.tracing import find_current_span_context, open_call_span
from shared.provenance.appender import Appender, AppendResult, Check, PendingAppend, Tips
from shared.provenance.ports import ChainKey, ChainStore, Target
from shared.provenance.records import RecordDraft, build_event_draft, parse_record
from shared.runtime import SYSTEM_RUNTIME, Runtime

MAX_QUEUED_BYTES: Final = 64_000_000
KNOWN_TIPS: Final = 1_000
_RUN_ID_BYTES: Final = 12
_FIRST_NUMBER: Final = 10**11
"""First number in the append ids of a process; all its numbers have the same length, so that ids sort by number."""


class ChainLog:
    """Appends records to all audit chains.

    Appends that arrive while a batch of the same chain is being stored form the next batch. If a caller is cancelled
    before its append is sent to the store, the append is dropped. If the caller is cancelled later, the append
    completes.

    Args:
        store: store of the chains.
        workspace: returns the workspace's id, which is part of each chain's genesis hash.
        give_up_seconds: time limit in seconds for retries of a batch after conflicts and unknown outcomes.
        max_queued_bytes: maximum size of all records that wait in this process; further appends are rejected.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        store: ChainStore,
        workspace: Callable[[], Awaitable[str]],
        *,
        give_up_seconds: float = 60,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._give_up_seconds = give_up_seconds
        self._max_queued_bytes = max_queued_bytes
        self._queued_bytes = 0
        self._run_id = runtime.new_token(_RUN_ID_BYTES)
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._tips: Tips = OrderedDict()
        self._appenders: dict[ChainKey, Appender] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._runtime = runtime

    async def append(
        self,
        chain: ChainKey,
        draft: RecordDraft,
        *,
        append_id: str = "",
        check: Check | None = None,
        confirm: Check | None = None,
        exclusive_key: str = "",
    ) -> AppendResult:
        """Append one record exactly once and return after it is stored durably.

        Args:
            chain: chain to append to; its first record creates it.
            draft: content of the record.
            append_id: id of the append, unique in the chain; a repeated call with the same id returns the stored
                record. Empty for an append that is certainly new.
            check: called before each attempt; raises an error to reject the append. If another record is appended after
                the check, the attempt fails and the check is called again. Its error has no effect if the chain already
                contains the append id.
            confirm: called at the end of each attempt, after the ``check`` of all appends of the batch and directly
                before the write; raises an error to reject the append. The attempt is repeated if the write cannot
                begin within ``CONFIRMATION_SECONDS``.
            exclusive_key: appends with the same text, such as ``decision 000000000007``, are never in one batch. So the
                ``check`` of an append can read the records of all earlier appends with this text.

        Raises:
            WorkspaceError: UNAVAILABLE: ``PROVENANCE_UNAVAILABLE`` if nothing was stored, ``PROVENANCE_BUSY`` if too
                many appends wait, ``PROVENANCE_OUTCOME_UNKNOWN`` if the record is possibly stored (repeat with the same
                append id); and the errors of ``check`` and ``confirm``.
        """
        if self._queued_bytes + draft.size > self._max_queued_bytes:
            detail = "Too many appends are waiting; retry after the stated time."
            raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_BUSY", detail, retryAfter=1)
        future: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        entry = PendingAppend(
            draft, append_id or self._create_append_id(), future, bool(append_id), check, confirm, exclusive_key
        )
        self._queued_bytes += draft.size
        try:
            with open_call_span(
                "append to an audit chain", {"workspace.chain.target": chain.target.value}, kind="INTERNAL"
            ):
                appender = self._appenders.get(chain) or self._get_or_start_appender(chain, await self._workspace())
                entry.caller = find_current_span_context()
                appender.waiting.append(entry)
                return await future
        finally:
            self._queued_bytes -= draft.size

    async def close(self) -> None:
        """Finish the accepted appends and close the store."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._store.close()

    def _create_append_id(self) -> str:
        """Create a new append id.

        Ids that one process creates sort together, which avoids random writes to the index.
        """
        return self._run_id + str(next(self._numbers))

    def _get_or_start_appender(self, chain: ChainKey, workspace_id: str) -> Appender:
        """Return the chain's appender; create and start the appender if it does not exist yet."""
        appender = self._appenders.get(chain)
        if appender is None:
            appender = self._appenders[chain] = Appender(
                self._store, chain, workspace_id, self._tips, self._give_up_seconds, runtime=self._runtime
            )
            # The task serves many requests, so it must not inherit the log context of the first one.
            task = asyncio.get_running_loop().create_task(self._run_appender(appender), context=contextvars.Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return appender

    async def _run_appender(self, appender: Appender) -> None:
        try:
            await appender.run()
        finally:
            # No await separates the last check of the queue from this line, so no entry can be lost.
            del self._appenders[appender.chain]
            while len(self._tips) > KNOWN_TIPS:
                self._tips.popitem(last=False)


class EventLog:
    """Implementation of AuditLog: appends the audit events of other domains to a :class:`ChainLog`.

    Args:
        log: log to which the events are appended.
    """

    def __init__(self, log: ChainLog) -> None:
        self.log = log

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append one audit event; if the append id is already stored, return the stored record instead."""
        appended = await self.append_to_chain(ChainKey(target, scope_key), user_id, event, append_id=append_id)
        return parse_record(appended.record.canonical, appended.record.hash)

    async def append_to_chain(
        self, chain: ChainKey, user_id: str, event: Mapping[str, Any], *, append_id: str = ""
    ) -> AppendResult:
        """Append one audit event; the result states whether an earlier call with the same append id has stored it.

        Args:
            chain: chain to append to.
            user_id: principal who caused the event.
            event: properties as for :meth:`AuditLog.append`; other properties are dropped.
            append_id: id of the append; a repeated call with the same id returns the stored record. Empty for an event
                that is certainly new.

        Raises:
            WorkspaceError: INVALID or TOO_LARGE for the event, and the errors of :meth:`ChainLog.append`.
        """
        return await self.log.append(chain, build_event_draft(user_id, event), append_id=append_id)

    async def close(self) -> None:
        """Finish the accepted appends and close the store."""
        await self.log.close()
