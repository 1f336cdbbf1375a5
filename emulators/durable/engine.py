"""Engine that runs turns of orchestrations and activities within the concurrency limits of host.json."""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from emulators.durable import events, turns
from emulators.durable.clock import Clock
from emulators.durable.functions import FunctionRunner
from emulators.durable.ports import FunctionCallError, StopSignal
from emulators.durable.records import Activity, OrchestrationStatus, PendingActivity
from emulators.durable.store import OrchestrationStore
from shared.observability.logs import fields, get_logger

DEFAULT_HUB = "TestHubName"
"""Default of the extension for an app without a site name."""

DEFAULT_CONCURRENCY = 10
_LOGGER = get_logger("emulators.durable")
_RETRY_SECONDS = 1.0
_CANCEL_SECONDS = 1.0
"""Limits the wait for functions that ignore their cancellation."""


@dataclass(frozen=True, slots=True)
class DurableSettings:
    """Task hub and concurrency limits.

    Attributes:
        hub: name of the task hub, part of management URLs.
        max_activities: most activities that run concurrently.
        max_orchestrators: most orchestrators that are replayed concurrently.
        version: the version of an orchestration that is started without one.
    """

    hub: str = DEFAULT_HUB
    max_activities: int = DEFAULT_CONCURRENCY
    max_orchestrators: int = DEFAULT_CONCURRENCY
    version: str | None = None


class DurableEngine:
    """Runner of the orchestrations of a store until the host stops; the next start continues unfinished ones."""

    def __init__(
        self,
        store: OrchestrationStore,
        functions: FunctionRunner,
        settings: DurableSettings,
        clock: Clock,
        stopping: StopSignal,
    ) -> None:
        self._store = store
        self._functions = functions
        self._settings = settings
        self._clock = clock
        self._stopping = stopping
        self._wake = asyncio.Event()
        self._running_turns: dict[str, asyncio.Task[None]] = {}
        self._running_activities: set[asyncio.Task[None]] = set()
        self._last_activity = 0

    def wake(self) -> None:
        """Notify the engine of new work."""
        self._wake.set()

    async def run(self) -> None:
        """Run orchestrations until the host stops; cancelled activities run again after the next start."""
        stop = asyncio.create_task(self._wake_on_stop())
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                await self._clock.wait(await self._start_ready_work(), self._wake)
        finally:
            stop.cancel()
            await self._cancel_running()

    async def _wake_on_stop(self) -> None:
        await self._stopping.wait()
        self._wake.set()

    async def _start_ready_work(self) -> datetime | None:
        """Start all ready turns and activities and return when the next timer is due."""
        at = self._clock.now()
        try:
            await self._start_turns(at)
            await self._start_activities()
            return await self._store.next_due(at)
        except sqlite3.Error:
            _LOGGER.exception("orchestrations cannot be read")
            await self._stopping.wait_for(_RETRY_SECONDS)
            return at

    async def _start_turns(self, at: datetime) -> None:
        free = self._settings.max_orchestrators - len(self._running_turns)
        if free <= 0:
            return
        find_ready = await self._store.find_ready(at, self._settings.max_orchestrators)
        for instance in [instance for instance in find_ready if instance not in self._running_turns][:free]:
            task = asyncio.create_task(self._turns(instance))
            self._running_turns[instance] = task
            task.add_done_callback(functools.partial(self._on_turns_done, instance))

    def _on_turns_done(self, instance: str, _task: asyncio.Task[None]) -> None:
        del self._running_turns[instance]
        self._wake.set()

    async def _start_activities(self) -> None:
        free = self._settings.max_activities - len(self._running_activities)
        if free <= 0:
            return
        for pending in await self._store.activities(self._last_activity, free):
            self._last_activity = pending.number
            task = asyncio.create_task(self._complete_activity(pending))
            self._running_activities.add(task)
            task.add_done_callback(self._on_activity_done)

    def _on_activity_done(self, task: asyncio.Task[None]) -> None:
        self._running_activities.discard(task)
        self._wake.set()

    async def _turns(self, instance: str) -> None:
        """Run turns of an instance while it has messages."""
        while not self._stopping.is_set():
            try:
                if not await self._turn(instance):
                    return
            except Exception:
                # Also covers defects of this engine: this instance is retried, and the others continue.
                _LOGGER.exception("a turn of an orchestration failed", extra=fields(instance=instance))
                await self._stopping.wait_for(_RETRY_SECONDS)
                return

    async def _turn(self, instance: str) -> bool:
        at = self._clock.now()
        work = await self._store.load_turn_input(instance, at)
        if work is None:
            return False
        turn = await turns.run_turn(work, self._functions.run_orchestrator, self._functions.names, at)
        stored = await self._store.commit(work, turn, at)
        if stored and turn.status is OrchestrationStatus.FAILED:
            where = fields(instance=instance, function=work.instance.start.name)
            _LOGGER.error("an orchestration failed: %s", turn.output, extra=where)
        self._wake.set()
        return stored

    async def _complete_activity(self, pending: PendingActivity) -> None:
        event = await self._run_activity(pending.activity)
        await self._store_with_retry(lambda: self._store.store_activity_result(pending, event, self._clock.now()))

    async def _run_activity(self, activity: Activity) -> events.Event:
        try:
            result = await self._functions.run_activity(activity.name, activity.input)
        except FunctionCallError as failure:
            _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
                "an activity failed: %s",
                failure,
                extra=fields(function=activity.name, instance=activity.instance, exception=failure.stack_trace),
            )
            reason = f"Activity function '{activity.name}' failed: {failure}"
            return events.task_failed(activity.task, reason, failure.stack_trace, self._clock.now())
        return events.task_completed(activity.task, result, self._clock.now())

    async def _store_with_retry(self, store: Callable[[], Awaitable[None]]) -> None:
        """Repeat a write until it succeeds; a lost result would block its orchestration."""
        while not self._stopping.is_set():
            try:
                await store()
            except sqlite3.Error:
                _LOGGER.exception("the result of an activity cannot be stored")
                await self._stopping.wait_for(_RETRY_SECONDS)
            else:
                return

    async def _cancel_running(self) -> None:
        running = [*self._running_turns.values(), *self._running_activities]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_CANCEL_SECONDS)
