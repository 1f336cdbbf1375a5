"""Quotas of downloads."""

import asyncio
from datetime import timedelta

import pytest

from shared.catalog.models import Quotas
from shared.downloads.expiry import DownloadExpiry
from shared.downloads.models import Format, Job, JobStatus
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose
from tests.unit.shared.downloads.plant import HOUR, START, Archive, Plant, Plants
from tests.unit.shared.downloads.test_service import JobRunner, caller, downloads

OWNER = "editor@t"


async def start(plant: Plant, runner: JobRunner | None = None, owner: str = OWNER) -> Job:
    """Start a download of one connection."""
    return await downloads(plant).start(
        caller(owner), ("pump",), Format.JSONL, START, START + 3 * HOUR, runner or JobRunner()
    )


async def refusal(plant: Plant) -> tuple[Kind, str]:
    """Return why a download is refused."""
    with pytest.raises(WorkspaceError) as failure:
        await start(plant)
    assert failure.value.members["limit"]
    return failure.value.kind, failure.value.code


async def active(plant: Plant) -> list[str]:
    """Return the jobs that count as unfinished."""
    return [place.id for place in await plant.places.held(OWNER, Purpose.JOBS) if place.active]


async def test_processes_at_once_start_no_more_than_the_quota(plants: Plants) -> None:
    """Of downloads started at once in two processes, as many start as allowed; another principal's start too."""
    one, two = plants.make(), plants.make()
    started = await asyncio.gather(*(start((one, two)[n % 2]) for n in range(14)), return_exceptions=True)
    codes = [each.code for each in started if isinstance(each, WorkspaceError)]
    assert codes == ["TOO_MANY_JOBS"] * 4
    assert len(await one.jobs.list_owned(OWNER)) == 10
    await start(one, owner="other@t")


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "expired"])
async def test_a_job_that_ends_makes_room(plants: Plants, end: str) -> None:
    """A job frees its place however it ends."""
    plant = plants.make()
    plant.quotas = Quotas(jobs_per_principal=1)
    job = await start(plant)
    assert await refusal(plant) == (Kind.THROTTLED, "TOO_MANY_JOBS")
    match end:
        case "completed":
            await plant.run(job.id)
        case "failed":
            await plant.work.fail(job.id)
        case "cancelled":
            await downloads(plant).cancel(caller(OWNER), job.id, JobRunner())
        case _:
            later = job.expires_at + timedelta(seconds=1)
            await DownloadExpiry(plant.jobs, plant.blobs, plant.quota, plant.scratch, clock=lambda: later).run()
    assert await active(plant) == []
    await start(plant)


async def test_a_job_that_cannot_start_frees_its_place(plants: Plants) -> None:
    """The refusal of the runner leaves no place behind."""
    plant = plants.make()
    with pytest.raises(WorkspaceError):
        await start(plant, JobRunner(refuse=True))
    assert await active(plant) == []


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, None])
async def test_places_that_a_dead_process_left_are_found(plants: Plants, status: JobStatus | None) -> None:
    """A place whose job has ended, or was never stored, is freed at the next refusal."""
    plant = plants.make()
    plant.quotas = Quotas(jobs_per_principal=1)
    await plant.quota.admit(OWNER, "lost")
    if status is not None:
        await plant.job("lost", status=status)
    else:
        assert await refusal(plant) == (Kind.THROTTLED, "TOO_MANY_JOBS")
        plant.now += timedelta(minutes=2)
    job = await start(plant)
    assert await active(plant) == [job.id]


async def test_a_download_that_would_pass_the_bytes_fails(plants: Plants) -> None:
    """The job's error begins with the code, its files go, and its bytes and its place are free again."""
    plant = plants.make()
    plant.quotas = Quotas(download_bytes=100)
    job = await plant.run((await start(plant)).id)
    assert job.status is JobStatus.FAILED
    assert (job.error or "").startswith("DOWNLOAD_QUOTA_EXCEEDED: ")
    assert "policies.quotas.downloadBytes" in (job.error or "")
    assert (plant.files(), list(await plant.places.held(OWNER, Purpose.JOBS))) == ([], [])


async def test_no_download_starts_while_the_bytes_are_used_up(plants: Plants) -> None:
    """Stored files count until they expire, and only for the principal that they belong to."""
    plant = plants.make()
    job = await plant.run((await start(plant)).id)
    assert job.status is JobStatus.COMPLETED
    plant.quotas = Quotas(download_bytes=job.stored_bytes)
    assert await refusal(plant) == (Kind.STORAGE_FULL, "DOWNLOAD_QUOTA_EXCEEDED")
    await start(plant, owner="other@t")
    plant.now = job.expires_at
    await start(plant)


async def test_parts_count_before_they_are_stored(plants: Plants, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long download stops at the part that would pass the limit, not at its end."""
    monkeypatch.setattr("shared.downloads.planning.PART_TIME", HOUR)
    monkeypatch.setattr("shared.downloads.planning.PART_BYTES", 200_000_000)
    plant = plants.make(Archive(size=200_000_000))
    whole = await plant.run((await start(plant)).id)
    [first, *_] = [file.size for _, file in whole.files()]
    plant.quotas = Quotas(download_bytes=whole.stored_bytes + first)
    second = await start(plant)
    numbers = await plant.plan_parts(second.id)
    assert len(numbers) == 3
    await plant.work.convert(second.id, numbers[0])
    assert (await plant.stored(second.id)).unfinished
    await plant.work.convert(second.id, numbers[1])
    assert (await plant.stored(second.id)).status is JobStatus.FAILED


async def test_a_small_job_of_another_principal_comes_next(plants: Plants, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one principal has many parts waiting, another one's part is converted after the one at work."""
    monkeypatch.setattr("shared.downloads.work.LARGE_PART_BYTES", 0)
    plant, order = plants.make(), list[str]()
    busy = [await start(plant) for _ in range(5)]
    small = await start(plant, owner="other@t")
    for job in (*busy, small):
        await plant.plan_parts(job.id)
    convert = plant.work._convert

    async def noted(job: Job, number: int, part: object) -> object:
        order.append(job.owner)
        return await convert(job, number, part)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(plant.work, "_convert", noted)
    done = await asyncio.gather(*(plant.work.convert(job.id, 0) for job in (*busy, small)))
    assert done == [True, True, True, True, False, True]
    assert order.index("other@t") == 1


async def test_one_job_of_a_principal_is_planned_at_a_time(plants: Plants, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second job of a principal is told to ask again, and another principal's is planned at once."""
    plant = plants.make()
    gate, waiting = asyncio.Event(), asyncio.Event()

    async def wait_until_archived(seconds: float) -> bool:
        assert seconds
        waiting.set()
        await gate.wait()
        return True

    monkeypatch.setattr(plant.arrivals, "wait_until_archived", wait_until_archived)
    first, second, other = await start(plant), await start(plant), await start(plant, owner="other@t")
    planning = asyncio.create_task(plant.work.next_parts(first.id))
    await waiting.wait()
    assert await plant.work.next_parts(second.id) is None
    others = asyncio.create_task(plant.work.next_parts(other.id))
    gate.set()
    assert (await planning, await others) == ([0], [0])
