"""Moves orchestrations on: gives each its turns and runs activities, as many at once as host.json allows."""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import datetime

from emulators.durable import events, turns
from emulators.durable.clock import Clock
from emulators.durable.functions import Functions
from emulators.durable.records import Activity, PendingActivity, Status
from emulators.durable.settings import DurableSettings
from emulators.durable.store import Store
from local.host.shutdown import Stopping
from local.host.worker import FunctionFailed
from shared.observability.logs import fields, logger

_LOGGER = logger("emulators.durable")
_TROUBLE_SECONDS = 1.0
_ABANDON_SECONDS = 1.0
"""A function that catches its cancellation does not keep the host."""


class Engine:
    """Runs the orchestrations of a store until the host stops; what it has not finished then is taken up again."""

    def __init__(
        self, store: Store, functions: Functions, settings: DurableSettings, clock: Clock, stopping: Stopping
    ) -> None:
        self._store = store
        self._functions = functions
        self._settings = settings
        self._clock = clock
        self._stopping = stopping
        self._wake = asyncio.Event()
        self._turning: dict[str, asyncio.Task[None]] = {}
        self._acting: set[asyncio.Task[None]] = set()
        self._last_activity = 0

    def wake(self) -> None:
        """Tell the engine that something happened."""
        self._wake.set()

    async def run(self) -> None:
        """Move orchestrations on until the host stops; activities that run then are abandoned, and run again later."""
        stop = asyncio.create_task(self._wake_on_stop())
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                await self._clock.wait(await self._spread(), self._wake)
        finally:
            stop.cancel()
            await self._abandon()

    async def _wake_on_stop(self) -> None:
        await self._stopping.wait()
        self._wake.set()

    async def _spread(self) -> datetime | None:
        """Begin what can begin now and return when the next timer is due."""
        at = self._clock.now()
        try:
            await self._begin_turns(at)
            await self._begin_activities()
            return await self._store.next_due(at)
        except sqlite3.Error:
            _LOGGER.exception("orchestrations cannot be read")
            await self._stopping.within(_TROUBLE_SECONDS)
            return at

    async def _begin_turns(self, at: datetime) -> None:
        free = self._settings.max_orchestrators - len(self._turning)
        if free <= 0:
            return
        ready = await self._store.ready(at, self._settings.max_orchestrators)
        for instance in [instance for instance in ready if instance not in self._turning][:free]:
            task = asyncio.create_task(self._turns(instance))
            self._turning[instance] = task
            task.add_done_callback(functools.partial(self._turned, instance))

    def _turned(self, instance: str, _task: asyncio.Task[None]) -> None:
        del self._turning[instance]
        self._wake.set()

    async def _begin_activities(self) -> None:
        free = self._settings.max_activities - len(self._acting)
        if free <= 0:
            return
        for pending in await self._store.activities(self._last_activity, free):
            self._last_activity = pending.number
            task = asyncio.create_task(self._act(pending))
            self._acting.add(task)
            task.add_done_callback(self._acted)

    def _acted(self, task: asyncio.Task[None]) -> None:
        self._acting.discard(task)
        self._wake.set()

    async def _turns(self, instance: str) -> None:
        """Give an instance turns for as long as there is something for it."""
        while not self._stopping.is_set():
            try:
                if not await self._turn(instance):
                    return
            except Exception:
                # Also what is a fault of this engine: the instance is tried again, the others go on.
                _LOGGER.exception("a turn cannot be made", extra=fields(instance=instance))
                await self._stopping.within(_TROUBLE_SECONDS)
                return

    async def _turn(self, instance: str) -> bool:
        at = self._clock.now()
        work = await self._store.work(instance, at)
        if work is None:
            return False
        turn = await turns.take(work, self._functions.orchestrate, self._functions.names, at)
        stored = await self._store.commit(work, turn, at)
        if stored and turn.status is Status.FAILED:
            where = fields(instance=instance, function=work.instance.start.name)
            _LOGGER.error("an orchestration failed: %s", turn.output, extra=where)
        self._wake.set()
        return stored

    async def _act(self, pending: PendingActivity) -> None:
        event = await self._outcome(pending.activity)
        await self._insist(lambda: self._store.activity_done(pending, event, self._clock.now()))

    async def _outcome(self, activity: Activity) -> events.Event:
        try:
            result = await self._functions.act(activity.name, activity.input)
        except FunctionFailed as failure:
            _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
                "an activity failed: %s",
                failure,
                extra=fields(function=activity.name, instance=activity.instance, exception=failure.stack_trace),
            )
            reason = f"Activity function '{activity.name}' failed: {failure}"
            return events.task_failed(activity.task, reason, failure.stack_trace, self._clock.now())
        return events.task_completed(activity.task, result, self._clock.now())

    async def _insist(self, store: Callable[[], Awaitable[None]]) -> None:
        """Store until it works: a result that is lost would leave its orchestration waiting until the next start."""
        while not self._stopping.is_set():
            try:
                await store()
            except sqlite3.Error:
                _LOGGER.exception("the end of an activity cannot be stored")
                await self._stopping.within(_TROUBLE_SECONDS)
            else:
                return

    async def _abandon(self) -> None:
        left = [*self._turning.values(), *self._acting]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_ABANDON_SECONDS)
