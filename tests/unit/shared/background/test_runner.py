"""Tests of the runner of background jobs and its schedules."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.backends.embedded.jobs import SCHEMA, SqliteJobLeaseStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.background import runner
from shared.background.ports import JobClaim
from shared.background.runner import LEASE, BackgroundJob, BackgroundRunner, Schedule
from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime
from tests.virtual_time import VirtualTime, run_in_virtual_time

START = datetime(2026, 3, 1, 12, 0, 0, 500_000, UTC)
EVERY_15_S = Schedule("*/15 * * * * *")


@pytest.fixture
async def lease_store(tmp_path: Path) -> AsyncIterator[SqliteJobLeaseStore]:
    """Return an empty store of job leases."""
    database = SqliteDatabase(tmp_path / "jobs.sqlite", SCHEMA)
    yield SqliteJobLeaseStore(database)
    await database.close()


@pytest.fixture
def clock() -> VirtualTime:
    """Return a clock at ``START``."""
    return VirtualTime(START)


async def test_a_job_runs_once_for_each_due_time(lease_store: SqliteJobLeaseStore, clock: VirtualTime) -> None:
    """A job runs once at each of its due times, and not at every tick."""
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)

    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime)
    for _ in range(31):
        await background.run_due_jobs()
        clock.advance(1)
    assert [moment.second for moment in runs] == [15, 30]


async def test_jobs_of_the_timers_call_run_at_their_due_times(
    lease_store: SqliteJobLeaseStore, clock: VirtualTime
) -> None:
    """Jobs that the caller of the tick passes run at their due times, like those of the runner."""
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)

    background = BackgroundRunner([], lease_store, runtime=clock.runtime)
    for _ in range(31):
        await background.run_due_jobs([BackgroundJob("job", EVERY_15_S, run_job)])
        clock.advance(1)
    assert [moment.second for moment in runs] == [15, 30]


async def test_jobs_continue_after_the_clock_is_set_back(lease_store: SqliteJobLeaseStore, clock: VirtualTime) -> None:
    """If the clock is set back by half an hour, a job runs at the next due time of the changed clock."""
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)

    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime)
    for _ in range(17):
        await background.run_due_jobs()
        clock.advance(1)
    clock.advance(-1800)
    for _ in range(17):
        await background.run_due_jobs()
        clock.advance(1)
    assert len(runs) == 2


async def test_jobs_continue_after_the_clock_is_set_back_during_a_run(
    lease_store: SqliteJobLeaseStore, clock: VirtualTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the clock is set back while a job runs, the job runs at the next due time of the changed clock."""
    started, finish = asyncio.Event(), asyncio.Event()
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)
        started.set()
        await finish.wait()

    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime)
    await background.run_due_jobs()
    with monkeypatch.context() as patch:
        patch.setattr(runner, "WAIT_SECONDS", 0.01)
        clock.advance(15)
        await background.run_due_jobs()
        await started.wait()
        clock.advance(-1800)
        # This tick sees the changed clock before the run ends.
        await background.run_due_jobs()
    finish.set()
    await asyncio.gather(*background._running.values())
    for _ in range(17):
        clock.advance(1)
        await background.run_due_jobs()
    assert len(runs) == 2


async def test_two_instances_run_a_job_once_per_due_time(lease_store: SqliteJobLeaseStore, clock: VirtualTime) -> None:
    """If two instances share a store, a job runs once at each due time."""
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)

    instances = [
        BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime)
        for _ in range(2)
    ]
    for _ in range(31):
        await asyncio.gather(*(instance.run_due_jobs() for instance in instances))
        clock.advance(1)
    assert len(runs) == 2


async def test_a_failed_job_runs_again_and_stops_no_other_job(
    lease_store: SqliteJobLeaseStore,
    clock: VirtualTime,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a job raises an error, the error is logged and counted, and all jobs run at their next due times."""
    runs: list[str] = []
    counted: list[tuple[str, str]] = []
    monkeypatch.setattr(runner, "count", lambda name, job: counted.append((name, job)))

    async def run_failing_job() -> None:
        runs.append("fail")
        raise WorkspaceError(Kind.UNAVAILABLE, "X", "the lease store does not respond")

    async def run_job() -> None:
        runs.append("work")

    jobs = [BackgroundJob("fail", EVERY_15_S, run_failing_job), BackgroundJob("work", EVERY_15_S, run_job)]
    background = BackgroundRunner(jobs, lease_store, runtime=clock.runtime)
    for _ in range(3):
        await background.run_due_jobs()
        clock.advance(15)
    assert sorted(runs) == ["fail", "fail", "work", "work"]
    assert sorted(counted) == [
        *[("workspace.background.failures", "fail")] * 2,
        *[("workspace.background.runs", "work")] * 2,
    ]
    assert "a background job failed" in caplog.text


@pytest.mark.parametrize(("repeat_seconds", "expected"), [(None, [0, 15]), (4, [0, 4, 8, 12, 15]), (20, [0, 15])])
async def test_a_failed_run_is_repeated_after_the_delay_of_its_job(
    lease_store: SqliteJobLeaseStore, clock: VirtualTime, repeat_seconds: float | None, expected: list[int]
) -> None:
    """A failed run is repeated after the delay of its job, or at the next due time if that is earlier."""
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)
        if len(runs) < len(expected):
            raise WorkspaceError(Kind.UNAVAILABLE, "X", "down")

    delay = None if repeat_seconds is None else timedelta(seconds=repeat_seconds)
    job = BackgroundJob("job", EVERY_15_S, run_job, delay)
    for _ in range(44):
        # Another instance repeats the run, too.
        await BackgroundRunner([job], lease_store, runtime=clock.runtime).run_due_jobs()
        clock.advance(1)
    assert [round((each - runs[0]).total_seconds()) for each in runs] == expected


async def test_a_long_job_does_not_delay_other_jobs(
    lease_store: SqliteJobLeaseStore, clock: VirtualTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a job runs, a tick returns and starts other jobs, but does not start this job again."""
    monkeypatch.setattr(runner, "WAIT_SECONDS", 0.01)
    started, finish = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    async def run_long_job() -> None:
        runs.append("long")
        started.set()
        await finish.wait()

    async def run_short_job() -> None:
        runs.append("short")

    jobs = [BackgroundJob("long", EVERY_15_S, run_long_job), BackgroundJob("short", EVERY_15_S, run_short_job)]
    background = BackgroundRunner(jobs, lease_store, runtime=clock.runtime)
    await background.run_due_jobs()
    await asyncio.gather(*background._running.values())
    for _ in range(3):
        clock.advance(15)
        await background.run_due_jobs()
        await started.wait()
        if (running := background._running.get("short")) is not None:
            await running
    assert (runs.count("long"), runs.count("short")) == (1, 3)
    finish.set()
    await background.close()


async def test_a_stopped_job_runs_at_once_on_another_instance(
    lease_store: SqliteJobLeaseStore, clock: VirtualTime
) -> None:
    """If a shutdown interrupts a job, another instance runs it at the next tick."""
    started, runs = asyncio.Event(), list[str]()

    async def run_forever() -> None:
        started.set()
        await asyncio.Event().wait()

    async def run_job() -> None:
        runs.append("made up")

    first = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_forever)], lease_store, runtime=clock.runtime)
    await first.run_due_jobs()
    clock.advance(15)
    ticking = asyncio.create_task(first.run_due_jobs())
    await started.wait()
    await first.close()
    await ticking
    await BackgroundRunner(
        [BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime
    ).run_due_jobs()
    assert runs == ["made up"]


async def test_a_job_whose_instance_dies_is_repeated(lease_store: SqliteJobLeaseStore, clock: VirtualTime) -> None:
    """If an instance dies during a job, another instance runs it after the lease has expired."""
    await lease_store.claim_job("job", "dead", START, START + LEASE, START)
    runs: list[datetime] = []

    async def run_job() -> None:
        runs.append(clock.now)

    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime)
    await background.run_due_jobs()
    assert runs == []
    clock.advance(LEASE.total_seconds())
    await background.run_due_jobs()
    assert len(runs) == 1


class SeparatedLeaseStore:
    """Store of job leases that one instance can no longer reach after it has claimed a job.

    Args:
        store: store that the other instances still reach.
        has_timeout: whether a call ends with an error, or gets no reply.
    """

    def __init__(self, store: SqliteJobLeaseStore, *, has_timeout: bool) -> None:
        self._store = store
        self._has_timeout = has_timeout

    async def claim_job(self, *arguments: Any) -> JobClaim:
        """Claim a job in the store."""
        return await self._store.claim_job(*arguments)

    async def try_extend_lease(self, *_: object) -> bool:
        """Raise an error, or wait without an end."""
        if not self._has_timeout:
            await asyncio.Event().wait()
        raise WorkspaceError(Kind.UNAVAILABLE, "BACKGROUND_JOBS_UNAVAILABLE", "down")

    async def release_lease(self, *_: object) -> None:
        """Raise an error."""
        raise WorkspaceError(Kind.UNAVAILABLE, "BACKGROUND_JOBS_UNAVAILABLE", "down")


@pytest.mark.parametrize("has_timeout", [True, False])
async def test_a_job_is_cancelled_before_its_lease_ends(
    lease_store: SqliteJobLeaseStore,
    clock: VirtualTime,
    monkeypatch: pytest.MonkeyPatch,
    has_timeout: bool,  # noqa: FBT001  a column
) -> None:
    """If an instance cannot extend a lease, its run ends before another instance can start the job."""
    monkeypatch.setattr(runner, "WAIT_SECONDS", 0.01)
    started, ended = asyncio.Event(), asyncio.Event()

    async def run_until_cancelled() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    store: Any = SeparatedLeaseStore(lease_store, has_timeout=has_timeout)
    job = BackgroundJob("job", EVERY_15_S, run_until_cancelled)
    await lease_store.claim_job("job", "", START, START, START)
    first = BackgroundRunner([job], store, runtime=clock.runtime)
    await first.run_due_jobs()
    await started.wait()
    clock.advance((LEASE - runner.LEASE_MARGIN).total_seconds())
    await asyncio.wait_for(ended.wait(), 10)
    claim = await lease_store.claim_job("job", "second", clock.now, clock.now + LEASE, clock.now)
    assert (claim.granted, claim.next_attempt) == (False, START + LEASE)
    await first.close()


@pytest.mark.parametrize("has_timeout", [True, False])
def test_a_short_outage_of_the_lease_store_cancels_no_run(has_timeout: bool) -> None:  # noqa: FBT001  a column
    """A run continues if the first extension of its lease fails or gets no reply, and a further one succeeds."""

    class RecoveringLeaseStore:
        def __init__(self) -> None:
            self.is_failing = True

        async def claim_job(self, *_: object) -> JobClaim:
            return JobClaim(granted=True, next_attempt=START)

        async def try_extend_lease(self, *_: object) -> bool:
            is_failing, self.is_failing = self.is_failing, False
            if is_failing:
                await asyncio.sleep(10 if has_timeout else 1000)
                raise WorkspaceError(Kind.UNAVAILABLE, "BACKGROUND_JOBS_UNAVAILABLE", "down")
            return True

        async def release_lease(self, *_: object) -> None:
            pass

    async def run_long_job() -> bool:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        clocks = Runtime(now=lambda: START + timedelta(seconds=loop.time()), monotonic=loop.time)

        async def run_job() -> None:
            await asyncio.sleep(2 * LEASE.total_seconds())
            ended.set()

        store: Any = RecoveringLeaseStore()
        background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], store, runtime=clocks)
        await background.run_due_jobs()
        await asyncio.sleep(2 * LEASE.total_seconds())
        await background.close()
        return ended.is_set()

    assert run_in_virtual_time(run_long_job())


async def test_a_job_is_not_started_if_its_claim_took_too_long(
    lease_store: SqliteJobLeaseStore, clock: VirtualTime
) -> None:
    """If the reply to a claim arrives when the lease has ended, the job does not run; the next tick claims it again."""
    runs: list[datetime] = []
    delays = [LEASE.total_seconds(), 0]

    class SlowLeaseStore:
        release_lease = lease_store.release_lease

        async def claim_job(self, *arguments: Any) -> JobClaim:
            claim = await lease_store.claim_job(*arguments)
            clock.advance(delays.pop(0))
            return claim

    async def run_job() -> None:
        runs.append(clock.now)

    store: Any = SlowLeaseStore()
    await lease_store.claim_job("job", "", START, START, START)
    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], store, runtime=clock.runtime)
    await background.run_due_jobs()
    assert runs == []
    await background.run_due_jobs()
    assert runs == [clock.now]


async def test_no_job_runs_while_the_lease_store_fails(clock: VirtualTime, caplog: pytest.LogCaptureFixture) -> None:
    """While the lease store fails, no job runs, because another instance is possibly running it."""

    class UnavailableLeaseStore:
        async def claim_job(self, *_: object) -> None:
            raise WorkspaceError(Kind.UNAVAILABLE, "BACKGROUND_JOBS_UNAVAILABLE", "down")

    async def run_job() -> None:
        pytest.fail("the job must not run")

    store: Any = UnavailableLeaseStore()
    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], store, runtime=clock.runtime)
    await background.run_due_jobs()
    assert "could not be claimed" in caplog.text


async def test_an_unfinished_run_is_due_again_at_once(lease_store: SqliteJobLeaseStore, clock: VirtualTime) -> None:
    """If a run reports that it is unfinished, it is repeated at the next tick instead of the next due time."""
    results: list[object] = [runner.UNFINISHED, runner.UNFINISHED, None, None]
    runs: list[datetime] = []

    async def run_job() -> object:
        runs.append(clock.now)
        return results[len(runs) - 1]

    background = BackgroundRunner([BackgroundJob("job", EVERY_15_S, run_job)], lease_store, runtime=clock.runtime)
    for _ in range(31):
        await background.run_due_jobs()
        clock.advance(1)
    assert [round((each - runs[0]).total_seconds()) for each in runs] == [0, 1, 2, 15]


MIDNIGHT = datetime(2026, 1, 31, 23, 59, 58, 500_000, UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * * *", "2026-01-31T23:59:59Z"),
        ("0 */5 * * * *", "2026-02-01T00:00:00Z"),
        ("*/5 * * * *", "2026-02-01T00:00:00Z"),
        ("30 0 9-17 * * MON-FRI", "2026-02-02T09:00:30Z"),
        ("0 0 0 13 * 5", "2026-02-13T00:00:00Z"),
        ("0 0 12 29 FEB *", "2028-02-29T12:00:00Z"),
    ],
)
def test_a_schedule_has_six_fields(expression: str, expected: str) -> None:
    """A schedule has six fields, the first for seconds; day of month and day of week must both match."""
    assert Schedule(expression).compute_next_due_time(MIDNIGHT) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "@daily",
        "0 0 0 L * *",
        "0 0 0 * * 1#2",
        "61 * * * * *",
        "0 0 0 31 2 *",
        "00:00:30",
        "? * * * * *",
    ],
)
def test_invalid_schedule_expressions_are_rejected(expression: str) -> None:
    """An expression is rejected if it is not NCRONTAB or never occurs."""
    with pytest.raises(ValueError, match="NCRONTAB"):
        Schedule(expression)


@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2090, 1, 1)), st.sampled_from([1, 2, 5, 15, 30]))  # noqa: DTZ001  aware below
def test_an_occurrence_is_the_next_multiple_of_the_step(naive: datetime, step: int) -> None:
    """For a field like ``*/15``, the next occurrence is the next multiple of the step, at most one step away."""
    instant = naive.replace(tzinfo=UTC)
    due = Schedule(f"*/{step} * * * * *").compute_next_due_time(instant)
    assert instant < due <= instant + timedelta(seconds=step)
    assert due.second % step == 0
    assert due.microsecond == 0


def test_due_times_do_not_depend_on_earlier_calls() -> None:
    """The due time after a given time does not depend on earlier calls."""
    schedule = Schedule("0 */5 * * * *")
    schedule.compute_next_due_time(MIDNIGHT + timedelta(days=400))
    assert schedule.compute_next_due_time(MIDNIGHT) == Schedule("0 */5 * * * *").compute_next_due_time(MIDNIGHT)
    assert schedule.compute_next_due_time(
        MIDNIGHT.astimezone(timezone(timedelta(hours=2)))
    ) == schedule.compute_next_due_time(MIDNIGHT)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-01-31T02:29:59.999999+00:00", "2026-01-30T02:30:00+00:00"),
        ("2026-01-31T02:30:00+00:00", "2026-01-31T02:30:00+00:00"),
        ("2026-01-31T02:30:00.000001+00:00", "2026-01-31T02:30:00+00:00"),
        ("2026-01-31T23:59:59.999999+00:00", "2026-01-31T02:30:00+00:00"),
    ],
)
def test_the_last_time_of_a_schedule_is_not_after_the_given_time(at: str, expected: str) -> None:
    """The last due time of a schedule is the newest one that is not after the given time."""
    last = Schedule("0 30 2 * * *").compute_last_due_time(datetime.fromisoformat(at))
    assert last == datetime.fromisoformat(expected)


def test_the_interval_is_the_time_between_two_occurrences() -> None:
    """The interval of a schedule is the time between two occurrences."""
    assert Schedule("*/10 * * * * *").compute_next_interval(MIDNIGHT) == timedelta(seconds=10)
