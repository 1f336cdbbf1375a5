"""Tests of download quotas: concurrent jobs and stored bytes."""

import asyncio
from datetime import timedelta

import pytest

from shared.catalog.models import Quotas
from shared.downloads.expiry import DownloadExpiry
from shared.downloads.models import DownloadFormat, Job, JobStatus
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose
from shared.runtime import Runtime
from tests.unit.shared.downloads.environment import HOUR, START, Environment, EnvironmentFactory, FakeArchive
from tests.unit.shared.downloads.test_service import JobRunner, build_caller, build_service

OWNER = "editor@t"


async def start_download(environment: Environment, runner: JobRunner | None = None, owner: str = OWNER) -> Job:
    """Start a download of one connection."""
    return await build_service(environment).start(
        build_caller(owner), ("pump",), DownloadFormat.JSONL, START, START + 3 * HOUR, runner or JobRunner()
    )


async def get_start_error(environment: Environment) -> tuple[Kind, str]:
    """Start a download that the quota must reject, and return kind and code of the error."""
    with pytest.raises(WorkspaceError) as failure:
        await start_download(environment)
    assert f", {failure.value.members['limit']} (policies" in failure.value.detail
    return failure.value.kind, failure.value.code


async def list_active_jobs(environment: Environment) -> list[str]:
    """Return the jobs that use a place in the quota of concurrent jobs."""
    return [place.id for place in await environment.places.list_reservations(OWNER, Purpose.JOBS) if place.active]


async def test_concurrent_starts_respect_the_quota(environment_factory: EnvironmentFactory) -> None:
    """If two processes start downloads at once, only as many as the quota start; other principals are not affected."""
    one, two = environment_factory.make(), environment_factory.make()
    started = await asyncio.gather(*(start_download((one, two)[n % 2]) for n in range(14)), return_exceptions=True)
    codes = [each.code for each in started if isinstance(each, WorkspaceError)]
    assert codes == ["TOO_MANY_JOBS"] * 4
    assert len(await one.jobs.list_jobs_of_owner(OWNER)) == 10
    await start_download(one, owner="other@t")


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "expired"])
async def test_an_ended_job_frees_its_place_in_the_quota(environment_factory: EnvironmentFactory, end: str) -> None:
    """When a job ends with any status, its place in the quota is free again."""
    environment = environment_factory.make()
    environment.quotas = Quotas(jobs_per_principal=1)
    job = await start_download(environment)
    assert await get_start_error(environment) == (Kind.THROTTLED, "TOO_MANY_JOBS")
    match end:
        case "completed":
            await environment.run(job.id)
        case "failed":
            await environment.work.fail_job(job.id)
        case "cancelled":
            await build_service(environment).cancel(build_caller(OWNER), job.id, JobRunner())
        case _:
            later = job.expires_at + timedelta(seconds=1)
            await DownloadExpiry(
                environment.jobs,
                environment.blobs,
                environment.quota,
                environment.scratch,
                runtime=Runtime(now=lambda: later),
            ).delete_expired_jobs_and_files()
    assert await list_active_jobs(environment) == []
    await start_download(environment)


async def test_job_that_cannot_start_frees_its_place_in_the_quota(environment_factory: EnvironmentFactory) -> None:
    """If the runner rejects the start of a job, the job's place is free again."""
    environment = environment_factory.make()
    with pytest.raises(WorkspaceError):
        await start_download(environment, JobRunner(refuse=True))
    assert await list_active_jobs(environment) == []


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, None])
async def test_quota_places_of_crashed_processes_are_freed(
    environment_factory: EnvironmentFactory, status: JobStatus | None
) -> None:
    """If a start is rejected for lack of places, places of ended and missing jobs are freed."""
    environment = environment_factory.make()
    environment.quotas = Quotas(jobs_per_principal=1)
    await environment.quota.reserve_job(OWNER, "lost")
    if status is not None:
        await environment.store_job("lost", status=status)
    else:
        assert await get_start_error(environment) == (Kind.THROTTLED, "TOO_MANY_JOBS")
        environment.now += timedelta(minutes=2)
    job = await start_download(environment)
    assert await list_active_jobs(environment) == [job.id]


async def test_quota_places_are_freed_after_clocks_are_set_back(environment_factory: EnvironmentFactory) -> None:
    """If the clocks are set back by half an hour, the place of a job that a process did not store is freed at once."""
    environment = environment_factory.make()
    environment.quotas = Quotas(jobs_per_principal=1)
    await environment.quota.reserve_job(OWNER, "lost")
    environment.now -= timedelta(minutes=30)
    job = await start_download(environment)
    assert await list_active_jobs(environment) == [job.id]


async def test_job_over_the_byte_quota_fails(environment_factory: EnvironmentFactory) -> None:
    """If a job exceeds the byte quota, it fails, its files are deleted and its place is freed."""
    environment = environment_factory.make()
    environment.quotas = Quotas(download_bytes=100)
    job = await environment.run((await start_download(environment)).id)
    assert job.status is JobStatus.FAILED
    assert job.error_code == "DOWNLOAD_QUOTA_EXCEEDED"
    assert (job.error or "").startswith("DOWNLOAD_QUOTA_EXCEEDED: ")
    assert "policies.quotas.downloadBytes" in (job.error or "")
    assert (environment.list_files(), list(await environment.places.list_reservations(OWNER, Purpose.JOBS))) == ([], [])


async def test_start_is_rejected_at_the_byte_quota(environment_factory: EnvironmentFactory) -> None:
    """If the byte quota is used up, new jobs are rejected; a job's stored files count until they expire."""
    environment = environment_factory.make()
    job = await environment.run((await start_download(environment)).id)
    assert job.status is JobStatus.COMPLETED
    environment.quotas = Quotas(download_bytes=job.stored_bytes)
    assert await get_start_error(environment) == (Kind.STORAGE_FULL, "DOWNLOAD_QUOTA_EXCEEDED")
    await start_download(environment, owner="other@t")
    environment.now = job.expires_at
    await start_download(environment)


async def test_a_download_fails_at_the_part_over_the_byte_quota(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download fails at the part that would exceed the byte quota, not only at its end."""
    monkeypatch.setattr("shared.downloads.work.PART_TIME", HOUR)
    monkeypatch.setattr("shared.downloads.work.PART_BYTES", 200_000_000)
    environment = environment_factory.make(FakeArchive(size=200_000_000))
    whole = await environment.run((await start_download(environment)).id)
    [first, *_] = [file.size for _, file in whole.list_files()]
    environment.quotas = Quotas(download_bytes=whole.stored_bytes + first)
    second = await start_download(environment)
    numbers = await environment.plan_parts(second.id)
    assert len(numbers) == 3
    await environment.work.convert_part_unless_busy(second.id, numbers[0])
    assert (await environment.load_job(second.id)).is_unfinished
    await environment.work.convert_part_unless_busy(second.id, numbers[1])
    assert (await environment.load_job(second.id)).status is JobStatus.FAILED


async def test_job_of_another_principal_runs_next(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one principal has many waiting parts, the next part to run belongs to another principal."""
    monkeypatch.setattr("shared.downloads.work.LARGE_PART_BYTES", 0)
    environment, order = environment_factory.make(), list[str]()
    busy = [await start_download(environment) for _ in range(5)]
    small = await start_download(environment, owner="other@t")
    for job in (*busy, small):
        await environment.plan_parts(job.id)
    convert = environment.work._create_and_upload_files

    async def record_part(job: Job, number: int, part: object) -> object:
        order.append(job.owner)
        return await convert(job, number, part)  # type: ignore[arg-type]

    monkeypatch.setattr(environment.work, "_create_and_upload_files", record_part)
    done = await asyncio.gather(*(environment.work.convert_part_unless_busy(job.id, 0) for job in (*busy, small)))
    assert done == [True, True, True, True, False, True]
    assert order.index("other@t") == 1


async def test_one_job_per_principal_is_planned_at_a_time(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a job is planned, a second job of the same principal waits, but jobs of other principals do not."""
    environment = environment_factory.make()
    gate, waiting = asyncio.Event(), asyncio.Event()

    async def wait_until_archived(timeout_seconds: float) -> bool:
        assert timeout_seconds
        waiting.set()
        await gate.wait()
        return True

    monkeypatch.setattr(environment.arrivals, "wait_until_archived", wait_until_archived)
    first, second, other = (
        await start_download(environment),
        await start_download(environment),
        await start_download(environment, owner="other@t"),
    )
    planning = asyncio.create_task(environment.work.plan_next_part_numbers_unless_busy(first.id))
    await waiting.wait()
    assert await environment.work.plan_next_part_numbers_unless_busy(second.id) is None
    others = asyncio.create_task(environment.work.plan_next_part_numbers_unless_busy(other.id))
    gate.set()
    assert (await planning, await others) == ([0], [0])
