"""Timer functions of the local host: their schedules, stored status and runs. Also deletes expired data every hour."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from local.host.shutdown import ShutdownSignal
from local.host.worker import FunctionFailed, LoadedFunction, invoke_function
from local.host.worker_protocol import TypedData
from shared.background.runner import Schedule
from shared.observability.logs import fields, get_logger
from shared.timestamps import now

_LOGGER = get_logger("local.timers")
_CLEANUP_LOGGER = get_logger("local.cleanup")
_MONITORED = timedelta(minutes=1)
_CLEANUP_SECONDS = 3600.0
_MAX_SLEEP = 30.0
"""Maximum seconds between two checks of the clock; short, because the clock can change or the machine can sleep."""
_CLOCK_TOLERANCE = timedelta(seconds=10)
"""Time by which the clock may go back without a new due time, so that small corrections repeat no run."""


@dataclass(frozen=True, slots=True)
class TimerSetting:
    """Configuration of a timer function: its schedule, and whether the function also runs when the host starts."""

    function: LoadedFunction
    schedule: Schedule
    run_on_startup: bool


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Last run and next due time of a timer."""

    last: datetime
    next: datetime

    def to_status_json(self) -> dict[str, str]:
        """Convert the last run and due time to the JSON status that the Functions host passes to a timer function."""
        return {"Last": self.last.isoformat(), "Next": self.next.isoformat(), "LastUpdated": self.last.isoformat()}


class TimerStatusFile:
    """JSON file with the last and next run of each timer; an unreadable file counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._documents = self._load_statuses_by_timer_name()

    def find(self, timer_name: str) -> Occurrence | None:
        """Return a timer's last and next run; None if the file has no valid entry for the timer."""
        try:
            document = self._documents[timer_name]
            return Occurrence(datetime.fromisoformat(document["Last"]), datetime.fromisoformat(document["Next"]))
        except (KeyError, ValueError, TypeError):
            return None

    def write(self, timer_name: str, occurrence: Occurrence) -> None:
        """Write the last and next run of a timer to the file, which is replaced atomically.

        Raises:
            OSError: the file cannot be written.
        """
        with self._lock:
            self._documents[timer_name] = occurrence.to_status_json()
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(self._documents))
            new.replace(self._path)

    def _load_statuses_by_timer_name(self) -> dict[str, dict[str, str]]:
        try:
            documents = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            _LOGGER.warning("the status of timers is lost: %s", error)
            return {}
        return documents if isinstance(documents, dict) else {}


class _FirstRun(NamedTuple):
    """First run of a timer after the start of the host; it is past due if a run was missed while no host ran."""

    due: datetime
    is_past_due: bool


class Timer:
    """Runner of one timer function, on its schedule and on request; runs never overlap."""

    def __init__(self, setting: TimerSetting, statuses: TimerStatusFile, stopping: ShutdownSignal) -> None:
        self._setting = setting
        self._statuses = statuses
        self._stopping = stopping
        self._running = asyncio.Lock()
        self._requested_runs: set[asyncio.Task[None]] = set()
        # As on the Functions host, timers with an interval below a minute have no status and are never past due.
        self._monitored = setting.schedule.compute_next_interval(now()) >= _MONITORED

    async def run(self) -> None:
        """Run the function on its schedule until the host stops, then wait for the end of runs on request."""
        due, past_due = self._find_first_run()
        while (served := await self._wait_until_due_unless_stopped(due)) is not None:
            await self._invoke_function(past_due=past_due)
            past_due = False
            due = self._compute_due_time_after(served)
        await asyncio.gather(*self._requested_runs)

    def run_now(self) -> None:
        """Run the function once now, or after the end of the current run."""
        task = asyncio.create_task(self._invoke_function(past_due=False))
        self._requested_runs.add(task)
        task.add_done_callback(self._requested_runs.discard)

    def _find_first_run(self) -> _FirstRun:
        last = self._statuses.find(self._setting.function.name) if self._monitored else None
        if last is not None and last.next <= now():
            return _FirstRun(now(), is_past_due=True)
        if self._setting.run_on_startup:
            return _FirstRun(now(), is_past_due=False)
        return _FirstRun(self._setting.schedule.compute_next_due_time(now()), is_past_due=False)

    async def _wait_until_due_unless_stopped(self, due: datetime) -> datetime | None:
        """Wait until a run is due; return its due time, or None if the host stops first.

        If the clock is set back meanwhile, compute the due time again from the changed clock, and wait for it instead.
        """
        planned_at = now()
        while (remaining := (due - now()).total_seconds()) > 0:
            if await self._stopping.wait_until_set(min(remaining, _MAX_SLEEP)):
                return None
            if now() < planned_at - _CLOCK_TOLERANCE:
                planned_at = now()
                due = self._setting.schedule.compute_next_due_time(planned_at)
        return None if self._stopping.is_set() else due

    def _compute_due_time_after(self, served_due_time: datetime) -> datetime:
        """Return the next due time after the run that was due at ``served_due_time``."""
        at = now()
        # The clock may be slightly before the due time that was just served.
        is_slightly_earlier = at < served_due_time <= at + _CLOCK_TOLERANCE
        return self._setting.schedule.compute_next_due_time(served_due_time if is_slightly_earlier else at)

    async def _invoke_function(self, *, past_due: bool) -> None:
        function = self._setting.function
        async with self._running:
            started = now()
            try:
                await invoke_function(function, TypedData(json=self._build_timer_input_json(past_due=past_due)))
            except FunctionFailed as failure:
                _LOGGER.error(  # noqa: TRY400  the stack trace that counts is the function's
                    "a timer function failed: %s",
                    failure,
                    extra=fields(function=function.name, exception=failure.stack_trace),
                )
            if self._monitored:
                await self._store_status(started)

    async def _store_status(self, started_at: datetime) -> None:
        occurrence = Occurrence(started_at, self._setting.schedule.compute_next_due_time(now()))
        try:
            await asyncio.to_thread(self._statuses.write, self._setting.function.name, occurrence)
        except OSError:
            _LOGGER.exception("the status of a timer is lost")

    def _build_timer_input_json(self, *, past_due: bool) -> str:
        status = self._statuses.find(self._setting.function.name) if self._monitored else None
        return json.dumps(
            {
                "Schedule": {"AdjustForDST": True},
                "ScheduleStatus": status and status.to_status_json(),
                "IsPastDue": past_due,
            }
        )


async def delete_expired_data_hourly(
    data_name: str, delete_and_count: Callable[[], Awaitable[int]], stopping: ShutdownSignal
) -> None:
    """Delete expired data immediately, and again every hour until the host stops; failures are logged.

    Args:
        data_name: name of the data, for the log.
        delete_and_count: deletes the expired data, and returns the number of deleted items.
        stopping: signal that the host stops.
    """
    while not stopping.is_set():
        try:
            deleted = await delete_and_count()
        except sqlite3.Error:
            _CLEANUP_LOGGER.exception("expired data cannot be deleted", extra=fields(data=data_name))
        else:
            if deleted:
                _CLEANUP_LOGGER.info("expired data is deleted", extra=fields(data=data_name, deleted=deleted))
        await stopping.wait_until_set(_CLEANUP_SECONDS)
