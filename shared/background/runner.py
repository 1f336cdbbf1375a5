"""Runner of background jobs: starts each job when it is due, on one instance at a time.

It is separate from ``ports``, because the stores of leases need no runner.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from shared.background.ports import JobLeaseStore
from shared.background.schedules import Schedule
from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count

LEASE: Final = timedelta(seconds=30)
"""Duration of a lease; if an instance dies, another one can run its job after this time."""

WAIT_SECONDS: Final = 2.0
"""Maximum duration of a tick; longer jobs continue after it, so that they do not delay other jobs."""

_LOG = get_logger("background")


@dataclass(frozen=True, slots=True)
class BackgroundJob:
    """A recurring job.

    Attributes:
        name: unique, and the same in all versions, because it is the key of the job in the store.
        schedule: when the job is due.
        run: does the work. It must be idempotent, because a run is repeated after a crash.
    """

    name: str
    schedule: Schedule
    run: Callable[[], Awaitable[object]]


class BackgroundRunner:
    """Runner that starts the due jobs at each tick of the timer.

    Args:
        jobs: the jobs; a job that still runs since an earlier tick is not started again.
        leases: the store that all instances share.
        clock: returns the current time.
    """

    def __init__(self, jobs: Sequence[BackgroundJob], leases: JobLeaseStore, clock: Callable[[], datetime]) -> None:
        self._jobs = jobs
        self._leases = leases
        self._clock = clock
        self._holder = uuid.uuid4().hex
        self._running: dict[str, asyncio.Task[None]] = {}
        self._next_attempts: dict[str, datetime] = {}

    async def tick(self) -> None:
        """Start every job that is due; return when all are done or after ``WAIT_SECONDS``."""
        at = self._clock()
        due = [
            job for job in self._jobs if not self._is_running(job.name) and at >= self._next_attempts.get(job.name, at)
        ]
        for job in due:
            task = asyncio.create_task(self._run(job), name=f"background job {job.name}")
            self._running[job.name] = task
            task.add_done_callback(partial(self._forget, job.name))
        if due:
            await asyncio.wait([self._running[job.name] for job in due], timeout=WAIT_SECONDS)

    async def close(self) -> None:
        """Cancel the running jobs; another instance can run them at once."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._running.get(name) is task:
            del self._running[name]

    def _is_running(self, name: str) -> bool:
        """Return whether a run of the job is in progress.

        The task is checked, because the callback that removes an ended task may not have run yet.
        """
        task = self._running.get(name)
        return task is not None and not task.done()

    async def _run(self, job: BackgroundJob) -> None:
        at = self._clock()
        try:
            claim = await self._leases.claim(job.name, self._holder, at, at + LEASE, job.schedule.next(at))
        except WorkspaceError as error:
            count("workspace.background.failures", job=job.name)
            _LOG.warning("a background job could not be claimed: %s", error, extra=fields(job=job.name))
            return
        self._next_attempts[job.name] = claim.next_attempt
        if claim.granted:
            await self._run_claimed(job, at)

    async def _run_claimed(self, job: BackgroundJob, at: datetime) -> None:
        work = asyncio.ensure_future(job.run())
        keeper = asyncio.create_task(self._keep_lease(job.name, work))
        due_at = at
        try:
            await work
            due_at = job.schedule.next(max(self._clock(), at))
        except asyncio.CancelledError:
            count("workspace.background.failures", job=job.name)
            _LOG.warning("a background job was cancelled before it completed", extra=fields(job=job.name))
        except Exception:  # noqa: BLE001  jobs are the domains'; the store needs the lease back whatever they raise
            # The next run repeats the work, and a failed job must not stop the others.
            count("workspace.background.failures", job=job.name)
            _LOG.exception("a background job failed", extra=fields(job=job.name))
            due_at = job.schedule.next(max(self._clock(), at))
        finally:
            keeper.cancel()
            work.cancel()
            await self._release(job.name, due_at)

    async def _release(self, job: str, due_at: datetime) -> None:
        self._next_attempts[job] = due_at
        try:
            await self._leases.release(job, self._holder, due_at)
        except WorkspaceError as error:
            _LOG.warning("a background job's lease was not released and will expire: %s", error, extra=fields(job=job))

    async def _keep_lease(self, job: str, work: asyncio.Future[object]) -> None:
        """Extend the lease while the job runs; stop the job if another instance has taken it over."""
        while True:
            await asyncio.sleep(LEASE.total_seconds() / 3)
            try:
                held = await self._leases.extend(job, self._holder, self._clock() + LEASE)
            except WorkspaceError as error:
                _LOG.warning("a lease could not be extended: %s", error, extra=fields(job=job))
                continue
            if not held:
                _LOG.warning("a background job is cancelled: another instance has its lease", extra=fields(job=job))
                work.cancel()
                return
