"""Runner of background jobs: starts each job when it is due, on one instance at a time.

Schedules are NCRONTAB expressions (cron expressions of Azure Functions), in UTC.

This module is separate from ``ports``, because the stores of leases need no runner.
"""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from croniter import CroniterError, croniter

from shared.background.ports import CLOCK_TOLERANCE, JobLeaseStore
from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime

_FIELD = re.compile(r"(?:[0-9*,/-]|[A-Za-z]{3})+")
_WITHOUT_SECONDS, _WITH_SECONDS = 5, 6


class Schedule:
    """Schedule from an NCRONTAB expression of six fields, seconds first; with five fields, the seconds are 0.

    See learn.microsoft.com/azure/azure-functions/functions-bindings-timer, "NCRONTAB expressions". Extensions of
    croniter (``L``, ``#``, ``@daily``) are rejected, because the Functions host rejects them, too.
    """

    def __init__(self, expression: str) -> None:
        """Parse an NCRONTAB expression.

        Raises:
            ValueError: the text is not an NCRONTAB expression, or has no occurrence.
        """
        parts = expression.split()
        if len(parts) == _WITHOUT_SECONDS:
            parts.insert(0, "0")
        if len(parts) != _WITH_SECONDS or not all(_FIELD.fullmatch(part) for part in parts):
            raise ValueError(f"{expression!r} is not an NCRONTAB expression such as 0 */5 * * * *")
        self._lock = threading.Lock()
        start = datetime.fromisoformat("2000-01-01T00:00:00Z")
        try:
            # NCRONTAB requires that both the day of month and the day of week match; cron requires only one of them.
            # Parsing takes ten times as long as the search for the next time, so it is done once.
            self._occurrences = croniter(" ".join(parts), start, second_at_beginning=True, day_or=False)
            self.compute_next_due_time(start)
        except CroniterError as error:
            raise ValueError(f"{expression!r} is not an NCRONTAB expression: {error}") from None

    def compute_next_due_time(self, after: datetime) -> datetime:
        """Return the first time after ``after`` at which the schedule is due."""
        with self._lock:
            instant: datetime = self._occurrences.get_next(datetime, after)
        return instant

    def compute_last_due_time(self, at: datetime) -> datetime:
        """Return the last time until ``at``, inclusive, at which the schedule was due."""
        with self._lock:
            instant: datetime = self._occurrences.get_prev(datetime, at + timedelta.resolution)
        return instant

    def compute_next_interval(self, after: datetime) -> timedelta:
        """Return the time between the next two due times after ``after``."""
        first = self.compute_next_due_time(after)
        return self.compute_next_due_time(first) - first


LEASE: Final = timedelta(seconds=30)
"""Duration of a job's lease; if an instance dies, another instance can run the job after this time."""

LEASE_MARGIN: Final = timedelta(seconds=5)
"""Time before the end of a lease at which a run is cancelled if the lease could not be extended.

It covers the time that the run needs to end, and clocks of other instances that are ahead.
"""

EXTENSION_SECONDS: Final = 5.0
"""Maximum seconds of one attempt to extend a lease; a store repeats its calls for longer."""

EXTENSION_RETRY_SECONDS: Final = 1.0
"""Seconds between a failed attempt to extend a lease and the next one, so that a short outage cancels no run."""

UNFINISHED: Final = object()
"""Return value of a job's function if another run must continue the work."""

WAIT_SECONDS: Final = 2.0
"""Maximum seconds that a tick of the timer waits for jobs; longer jobs continue after the tick."""

_LOG = get_logger("background")


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """Recurring background job.

    Attributes:
        name: unique name; the same in all versions of the service, because it is the key of the job in the store.
        schedule: times at which the job is due.
        run: does the work of the job; called once each time the job is due. It must be idempotent, because a run is
            repeated after a crash. If it returns :data:`UNFINISHED`, the job is due again immediately.
        repeat_failed_after: time after which a failed run is repeated, if the job is not due earlier; None if the job
            waits for its next due time.
    """

    name: str
    schedule: Schedule
    run: Callable[[], Awaitable[object]]
    repeat_failed_after: timedelta | None = None

    def compute_due_time_after_failure(self, failed_at: datetime) -> datetime:
        """Return the time of the run that repeats the work of a failed run."""
        next_due = self.schedule.compute_next_due_time(failed_at)
        return next_due if self.repeat_failed_after is None else min(next_due, failed_at + self.repeat_failed_after)


class _NextAttempt(NamedTuple):
    """Earliest time of the next attempt to claim a job (``at``), and the time at which ``at`` was determined."""

    at: datetime
    decided_at: datetime


@dataclass(slots=True)
class _Lease:
    """Lease of a running job. ``safe_until`` is the time of the monotonic clock at which the run must have ended."""

    safe_until: float


def _compute_safe_end(requested_at: float) -> float:
    """Return ``safe_until`` of a lease.

    Args:
        requested_at: time of the monotonic clock before the store was called. The reply can arrive much later.
    """
    return requested_at + (LEASE - LEASE_MARGIN).total_seconds()


class BackgroundRunner:
    """Runner of background jobs: starts the due jobs at each tick of the timer, which calls :meth:`run_due_jobs`.

    Args:
        jobs: all jobs; a job that is still running is not started again.
        leases: store of the jobs' leases, shared by all instances.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self, jobs: Sequence[BackgroundJob], leases: JobLeaseStore, *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self._jobs = jobs
        self._leases = leases
        self._holder = runtime.new_id()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._next_attempts: dict[str, _NextAttempt] = {}
        self._runtime = runtime

    async def run_due_jobs(self, further_jobs: Sequence[BackgroundJob] = ()) -> None:
        """Start every job that is due; return as soon as all have ended, but at the latest after ``WAIT_SECONDS``.

        Args:
            further_jobs: further jobs to start when they are due, such as a job that uses the Durable Functions client
                of the timer's call. Every call must pass the same jobs.
        """
        at = self._runtime.now()
        jobs = (*self._jobs, *further_jobs)
        due = [job for job in jobs if not self._is_job_running(job.name) and self._can_claim_job(job.name, at)]
        for job in due:
            task = asyncio.create_task(self._claim_and_run_job(job), name=f"background job {job.name}")
            self._running[job.name] = task
            task.add_done_callback(partial(self._remove_finished_task, job.name))
        if due:
            await asyncio.wait([self._running[job.name] for job in due], timeout=WAIT_SECONDS)

    async def close(self) -> None:
        """Cancel the running jobs, so that another instance of the service can run them immediately."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remove_finished_task(self, job_name: str, task: asyncio.Task[None]) -> None:
        if self._running.get(job_name) is task:
            del self._running[job_name]

    def _can_claim_job(self, job_name: str, at: datetime) -> bool:
        """Return whether a job may be claimed: its next attempt is due, or was planned before the clock was set back.

        The clock was set back if the current time is before the time at which the attempt was planned. A comparison of
        consecutive ticks would miss a change of the clock during a run.
        """
        attempt = self._next_attempts.get(job_name)
        return attempt is None or at >= attempt.at or at < attempt.decided_at - CLOCK_TOLERANCE

    def _is_job_running(self, job_name: str) -> bool:
        """Return whether a run of the job is in progress.

        The method checks whether the task of the job has ended, because the callback that removes ended tasks may not
        have run yet.
        """
        task = self._running.get(job_name)
        return task is not None and not task.done()

    async def _claim_and_run_job(self, job: BackgroundJob) -> None:
        at = self._runtime.now()
        lease = _Lease(_compute_safe_end(self._runtime.monotonic()))
        try:
            claim = await self._leases.claim_job(
                job.name, self._holder, at, at + LEASE, job.schedule.compute_next_due_time(at)
            )
        except WorkspaceError as error:
            count("workspace.background.failures", job=job.name)
            _LOG.warning("a background job could not be claimed: %s", error, extra=fields(job=job.name))
            return
        self._next_attempts[job.name] = _NextAttempt(claim.next_attempt, at)
        if not claim.granted:
            return
        if self._runtime.monotonic() >= lease.safe_until:
            count("workspace.background.failures", job=job.name)
            _LOG.warning("a background job is not started: its claim took too long", extra=fields(job=job.name))
            return
        await self._run_claimed_job(job, at, lease)

    async def _run_claimed_job(self, job: BackgroundJob, at: datetime, lease: _Lease) -> None:
        work = asyncio.ensure_future(job.run())
        keepers = (
            asyncio.create_task(self._extend_lease_while_running(job.name, lease, work)),
            asyncio.create_task(self._cancel_job_before_lease_ends(job.name, lease, work)),
        )
        due_at = at
        try:
            if await work is not UNFINISHED:
                due_at = job.schedule.compute_next_due_time(max(self._runtime.now(), at))
            count("workspace.background.runs", job=job.name)
        except asyncio.CancelledError:
            count("workspace.background.failures", job=job.name)
            _LOG.warning("a background job was cancelled before it completed", extra=fields(job=job.name))
        except Exception:  # noqa: BLE001  jobs are the domains'; the store needs the lease back whatever they raise
            # The next run repeats the work, and a failed job must not stop the others.
            count("workspace.background.failures", job=job.name)
            _LOG.exception("a background job failed", extra=fields(job=job.name))
            due_at = job.compute_due_time_after_failure(max(self._runtime.now(), at))
        finally:
            for task in (*keepers, work):
                task.cancel()
            self._next_attempts[job.name] = _NextAttempt(due_at, max(self._runtime.now(), at))
            await self._release_lease(job.name, due_at)

    async def _release_lease(self, job_name: str, next_due_at: datetime) -> None:
        try:
            await self._leases.release_lease(job_name, self._holder, next_due_at)
        except WorkspaceError as error:
            _LOG.warning(
                "a background job's lease was not released and will expire: %s", error, extra=fields(job=job_name)
            )

    async def _extend_lease_while_running(
        self, job_name: str, lease: _Lease, running_job: asyncio.Future[object]
    ) -> None:
        """Extend the lease of a job while the job runs; cancel the job if the lease is lost to another instance."""
        pause = LEASE.total_seconds() / 3
        while True:
            await self._runtime.sleep(pause)
            safe_until = _compute_safe_end(self._runtime.monotonic())
            try:
                async with asyncio.timeout(EXTENSION_SECONDS):
                    held = await self._leases.try_extend_lease(job_name, self._holder, self._runtime.now() + LEASE)
            except (WorkspaceError, TimeoutError) as error:
                _LOG.warning("a lease could not be extended: %s", str(error) or "timeout", extra=fields(job=job_name))
                pause = EXTENSION_RETRY_SECONDS
                continue
            if not held:
                _LOG.warning(
                    "a background job is cancelled: another instance has its lease", extra=fields(job=job_name)
                )
                running_job.cancel()
                return
            lease.safe_until = safe_until
            pause = LEASE.total_seconds() / 3

    async def _cancel_job_before_lease_ends(
        self, job_name: str, lease: _Lease, running_job: asyncio.Future[object]
    ) -> None:
        """Cancel a job shortly before its lease ends, because another instance can then start the job.

        This is a separate task, because the store may not respond to the extension.
        """
        while (seconds := lease.safe_until - self._runtime.monotonic()) > 0:
            await self._runtime.sleep(seconds)
        _LOG.warning("a background job is cancelled: its lease could not be extended", extra=fields(job=job_name))
        running_job.cancel()
