"""Timer functions: when they are due, and the loop that runs each of them, never twice at once."""

import asyncio
import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from local.host.shutdown import ShutdownSignal
from local.host.timer_status import Occurrence, TimerStatusFile
from local.host.worker import FunctionFailed, LoadedFunction, invoke
from local.host.worker_protocol import TypedData
from shared.background.schedules import Schedule
from shared.observability.logs import fields, get_logger
from shared.timestamps import now

_LOGGER = get_logger("local.timers")
_MONITORED = timedelta(minutes=1)
_MAX_SLEEP = 30.0
"""Seconds; the clock of a desk machine may be set, or stand still while it sleeps."""


@dataclass(frozen=True, slots=True)
class TimerSetting:
    """What a timer function declares: its schedule, and whether it also runs when the host starts."""

    function: LoadedFunction
    schedule: Schedule
    run_on_startup: bool


class Timer:
    """Runs one timer function on its schedule and when asked to."""

    def __init__(self, setting: TimerSetting, statuses: TimerStatusFile, stopping: ShutdownSignal) -> None:
        self._setting = setting
        self._statuses = statuses
        self._stopping = stopping
        self._running = asyncio.Lock()
        self._asked: set[asyncio.Task[None]] = set()
        # As the Functions host: what runs more often than every minute leaves no status behind and is never past due.
        self._monitored = setting.schedule.interval(now()) >= _MONITORED

    async def run(self) -> None:
        """Run the function whenever it is due, until the host stops; waits for runs that were asked for."""
        due, past_due = self._first()
        while not await self._stopping_before(due):
            await self._invoke(past_due=past_due)
            past_due = False
            # The clock may stand a little before the instant that has just been served.
            due = self._setting.schedule.next(max(now(), due))
        await asyncio.gather(*self._asked)

    def run_now(self) -> None:
        """Start the function once, after a run in progress."""
        task = asyncio.create_task(self._invoke(past_due=False))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    def _first(self) -> tuple[datetime, bool]:
        """Return when the function is first due, and whether an occurrence passed while the host was down."""
        last = self._statuses.read(self._setting.function.name) if self._monitored else None
        if last is not None and last.next <= now():
            return now(), True
        if self._setting.run_on_startup:
            return now(), False
        return self._setting.schedule.next(now()), False

    async def _stopping_before(self, due: datetime) -> bool:
        while (remaining := (due - now()).total_seconds()) > 0:
            if await self._stopping.wait_for(min(remaining, _MAX_SLEEP)):
                return True
        return self._stopping.is_set()

    async def _invoke(self, *, past_due: bool) -> None:
        function = self._setting.function
        async with self._running:
            started = now()
            try:
                await invoke(function, TypedData(json=self._payload(past_due=past_due)))
            except FunctionFailed as failure:
                _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
                    "a timer failed: %s", failure, extra=fields(function=function.name, exception=failure.stack_trace)
                )
            if self._monitored:
                await self._note(started)

    async def _note(self, started: datetime) -> None:
        occurrence = Occurrence(started, self._setting.schedule.next(now()))
        try:
            await asyncio.to_thread(self._statuses.write, self._setting.function.name, occurrence)
        except OSError:
            _LOGGER.exception("the status of a timer is lost")

    def _payload(self, *, past_due: bool) -> str:
        status = self._statuses.read(self._setting.function.name) if self._monitored else None
        return json.dumps(
            {
                "Schedule": {"AdjustForDST": True},
                "ScheduleStatus": status and status.document(),
                "IsPastDue": past_due,
            }
        )
