"""Engine that runs orchestrations: their turns (replays of the orchestrator function) and their activities.

Settings of host.json limit the numbers of concurrent turns and activities.
"""

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
"""Name of the task hub of an app without a site name, as in the Durable Task extension."""

DEFAULT_CONCURRENCY = 10
_LOGGER = get_logger("emulators.durable")
_RETRY_SECONDS = 1.0
_CANCEL_SECONDS = 1.0
"""Maximum time to wait for functions of the app that ignore their cancellation."""


@dataclass(frozen=True, slots=True)
class DurableSettings:
    """Settings of the Durable Task emulator, from host.json.

    Attributes:
        hub: name of the task hub, which management URLs contain.
        max_activities: maximum number of activities that run concurrently.
        max_orchestrators: maximum number of orchestrators that are replayed concurrently.
        version: version of each orchestration that is started without a version.
    """

    hub: str = DEFAULT_HUB
    max_activities: int = DEFAULT_CONCURRENCY
    max_orchestrators: int = DEFAULT_CONCURRENCY
    version: str | None = None


class DurableEngine:
    """Engine that runs stored orchestrations until the host stops.

    Unfinished orchestrations continue after the next start of the host.
    """

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
        """Notify the engine that orchestrators or activities are possibly ready to run."""
        self._wake.set()

    async def run(self) -> None:
        """Run orchestrations until the host stops.

        An interrupted activity runs again after the next start of the host.
        """
        stop = asyncio.create_task(self._wait_for_stop_and_wake_run_loop())
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                await self._clock.wait_until_due_or_woken(await self._start_ready_work_and_find_due_time(), self._wake)
        finally:
            stop.cancel()
            await self._cancel_running_tasks()

    async def _wait_for_stop_and_wake_run_loop(self) -> None:
        await self._stopping.wait()
        self._wake.set()

    async def _start_ready_work_and_find_due_time(self) -> datetime | None:
        """Start ready orchestrators and activities, within the limits; return the due time of the next timer."""
        at = self._clock.now()
        try:
            await self._start_due_turns(at)
            await self._start_activities()
            return await self._store.find_next_due_time(at)
        except sqlite3.Error:
            _LOGGER.exception("orchestrations cannot be read")
            await self._stopping.wait_until_set(_RETRY_SECONDS)
            return at

    async def _start_due_turns(self, now: datetime) -> None:
        free = self._settings.max_orchestrators - len(self._running_turns)
        if free <= 0:
            return
        ready = await self._store.list_ready_instance_ids(now, self._settings.max_orchestrators)
        for instance_id in [instance_id for instance_id in ready if instance_id not in self._running_turns][:free]:
            task = asyncio.create_task(self._run_turns(instance_id))
            self._running_turns[instance_id] = task
            task.add_done_callback(functools.partial(self._remove_turn_task, instance_id))

    def _remove_turn_task(self, instance_id: str, _task: asyncio.Task[None]) -> None:
        del self._running_turns[instance_id]
        self._wake.set()

    async def _start_activities(self) -> None:
        free = self._settings.max_activities - len(self._running_activities)
        if free <= 0:
            return
        for pending in await self._store.list_pending_activities(self._last_activity, free):
            self._last_activity = pending.number
            task = asyncio.create_task(self._run_activity_and_store_result(pending))
            self._running_activities.add(task)
            task.add_done_callback(self._remove_activity_task)

    def _remove_activity_task(self, task: asyncio.Task[None]) -> None:
        self._running_activities.discard(task)
        self._wake.set()

    async def _run_turns(self, instance_id: str) -> None:
        """Run turns (replays) of an orchestration instance as long as a message to the instance can be delivered."""
        while not self._stopping.is_set():
            try:
                if not await self._try_run_turn(instance_id):
                    return
            except Exception:
                # A defect of this engine must not stop other instances; this instance is retried.
                _LOGGER.exception("a turn of an orchestration failed", extra=fields(instance=instance_id))
                await self._stopping.wait_until_set(_RETRY_SECONDS)
                return

    async def _try_run_turn(self, instance_id: str) -> bool:
        """Run one turn of an instance; return False if no message can be delivered or the turn was not stored."""
        at = self._clock.now()
        work = await self._store.find_next_turn_input(instance_id, at)
        if work is None:
            return False
        turn = await turns.run_turn(work, self._functions.run_orchestrator, self._functions.function_names, at)
        stored = await self._store.try_commit_turn(work, turn, at)
        if stored and turn.status is OrchestrationStatus.FAILED:
            where = fields(instance=instance_id, function=work.instance.start.name)
            _LOGGER.error("an orchestration failed: %s", turn.output, extra=where)
        self._wake.set()
        return stored

    async def _run_activity_and_store_result(self, pending: PendingActivity) -> None:
        event = await self._run_activity_and_build_event(pending.activity)
        await self._store_with_retry(lambda: self._store.store_activity_result(pending, event, self._clock.now()))

    async def _run_activity_and_build_event(self, activity: Activity) -> events.Event:
        try:
            result = await self._functions.run_activity(activity.name, activity.input)
        except FunctionCallError as failure:
            _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
                "an activity function failed: %s",
                failure,
                extra=fields(function=activity.name, instance=activity.instance, exception=failure.stack_trace),
            )
            reason = f"Activity function '{activity.name}' failed: {failure}"
            return events.build_task_failed(activity.task, reason, failure.stack_trace, self._clock.now())
        return events.build_task_completed(activity.task, result, self._clock.now())

    async def _store_with_retry(self, write: Callable[[], Awaitable[None]]) -> None:
        """Repeat a write until the store accepts it; if the write were lost, the orchestration would wait forever."""
        while not self._stopping.is_set():
            try:
                await write()
            except sqlite3.Error:
                _LOGGER.exception("the result of an activity cannot be stored")
                await self._stopping.wait_until_set(_RETRY_SECONDS)
            else:
                return

    async def _cancel_running_tasks(self) -> None:
        running = [*self._running_turns.values(), *self._running_activities]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_CANCEL_SECONDS)
