"""A download is worked off in steps that may each be done again."""

import asyncio
import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from shared.downloads import conversion
from shared.downloads.expiry import DownloadExpiry
from shared.downloads.models import Format, Job, JobStatus
from shared.errors import WorkspaceError
from tests.unit.shared.downloads.plant import HOUR, START, Archive, Plant, Plants

BIG = 200_000_000
"""A size of an hour that makes each hour a part of its own, where a part may be that short."""


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts be an hour long."""
    monkeypatch.setattr("shared.downloads.planning.PART_TIME", HOUR)
    monkeypatch.setattr("shared.downloads.planning.PART_BYTES", BIG)


def contents(plant: Plant, job: Job, connection: str) -> list[Path]:
    """Return a connection's files after checking their size."""
    found = []
    for owner, file in job.files():
        path = plant.folder / file.blob
        assert path.stat().st_size == file.size
        if owner == connection:
            found.append(path)
    return found


async def test_every_connection_gets_its_file(plants: Plants) -> None:
    """A small job makes one file a connection with all its rows, and counts them."""
    plant = plants.make()
    await plant.job(form=Format.JSONL)
    job = await plant.run()
    assert (job.status, job.rows, job.connections_done, job.error) == (JobStatus.COMPLETED, 30, 2, None)
    for connection in ("press", "pump"):
        [path] = contents(plant, job, connection)
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["payload"] for row in rows] == [
            {"hour": hour, "n": number} for hour in range(3) for number in range(5)
        ]
        assert {row["connection"] for row in rows} == {connection}
    assert list(plant.scratch.iterdir()) == []


async def test_the_range_is_half_open(plants: Plants) -> None:
    """A row at the start is in, one at the end is not."""
    plant = plants.make()
    await plant.job(start=START + timedelta(seconds=1), end=START + HOUR + timedelta(seconds=2))
    assert (await plant.run()).rows == 2 * (4 + 2)


async def test_parts_of_a_connection_share_a_header(plants: Plants, short_parts: None) -> None:
    """Where a later part has keys that the first ones lack, those are made again with columns for them."""
    plant = plants.make(Archive(payload=lambda hour, number: {f"k{hour}": number, "n": number}, size=BIG))
    await plant.job()
    job = await plant.run()
    assert job.parts is not None
    assert len(job.parts) == 6
    paths = contents(plant, job, "pump")
    heads = [path.read_text().splitlines()[0] for path in paths]
    assert heads == ["timestamp,connection,deviceId,messageId,k0,k1,k2,n"] * 3
    rows = [row for path in paths for row in csv.DictReader(path.read_text().splitlines())]
    assert [row["messageId"] for row in rows] == [f"{hour}-{number}" for hour in range(3) for number in range(5)]
    assert [row["k1"] for row in rows] == [""] * 5 + [str(number) for number in range(5)] + [""] * 5


@pytest.mark.parametrize("form", list(Format))
async def test_a_step_may_be_done_again(plants: Plants, short_parts: None, form: Format) -> None:
    """Planning and converting twice leaves the job and its files as they were after once."""
    plant = plants.make(Archive(size=BIG))
    await plant.job(form=form)
    numbers = await plant.plan_parts()
    assert list(numbers) == list(await plant.plan_parts())
    for number in numbers:
        await plant.work.convert("j1", number)
    before, files = await plant.stored(), plant.files()
    for number in reversed(numbers):
        await plant.work.convert("j1", number)
    assert (await plant.stored(), plant.files()) == (before, files)
    await plant.work.finish("j1")
    await plant.work.fail("j1")
    assert (await plant.stored()).status is JobStatus.COMPLETED


async def test_an_empty_range_completes(plants: Plants) -> None:
    """Connections without rows have a file each."""
    plant = plants.make(Archive(per_hour=0))
    await plant.job()
    job = await plant.run()
    assert (job.status, job.rows, len(job.files())) == (JobStatus.COMPLETED, 0, 2)


async def test_an_outage_is_raised_for_another_attempt(plants: Plants) -> None:
    """While the archive does not answer, the step fails and the job goes on later."""
    archive = Archive()
    plant = plants.make(archive)
    await plant.job()
    archive.down = True
    await plant.plan_parts()
    with pytest.raises(WorkspaceError, match="down"):
        await plant.work.convert("j1", 0)
    assert (await plant.stored()).status is JobStatus.RUNNING
    archive.down = False
    assert (await plant.run()).status is JobStatus.COMPLETED
    assert list(plant.scratch.iterdir()) == []


async def test_giving_up_removes_the_files(plants: Plants) -> None:
    """A job that failed says so without the cause, and leaves nothing behind."""
    plant = plants.make()
    await plant.job()
    await plant.plan_parts()
    await plant.work.convert("j1", 0)
    assert plant.files()
    await plant.work.fail("j1")
    job = await plant.stored()
    assert (job.status, plant.files()) == (JobStatus.FAILED, [])
    assert job.error is not None
    assert "log" in job.error
    assert await plant.plan_parts() == []


async def test_too_many_columns_fail_the_job(plants: Plants, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no attempt can change ends the job at once, with a reason to act on."""
    monkeypatch.setattr("shared.downloads.flattening.MAX_LEAVES", 8)
    plant = plants.make(Archive(payload=lambda hour, number: {f"k{hour}-{number}": 1}))
    await plant.job()
    job = await plant.run()
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert "use jsonl or parquet" in job.error


async def test_a_cancelled_conversion_stops_and_leaves_nothing(plants: Plants, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled while a file is written, the step ends by itself and nothing of it stays."""
    monkeypatch.setattr("shared.downloads.work.POLL_SECONDS", 0.01)
    plant = plants.make(Archive(hours=2, per_hour=1))
    begun, go_on = asyncio.Event(), asyncio.Event()
    rows = plant.archive.rows

    async def endless(connection: str, *bounds: Any) -> Any:
        while True:
            async for batch in rows(connection, *bounds):
                yield pa.concat_batches([batch] * 10_000)
            begun.set()

    monkeypatch.setattr(plant.archive, "rows", endless)
    await plant.job(form=Format.JSONL)
    await plant.plan_parts()
    step = asyncio.create_task(plant.work.convert("j1", 0))
    await begun.wait()
    go_on.set()
    await plant.jobs.change("j1", Job.cancel)
    await asyncio.wait_for(step, 30)
    assert ((await plant.stored()).status, plant.files()) == (JobStatus.CANCELLED, [])
    assert list(plant.scratch.iterdir()) == []


async def test_files_of_a_job_cancelled_at_the_last_moment_go(plants: Plants, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was uploaded while the job was cancelled is removed by the step that uploaded it."""
    plant = plants.make()
    await plant.job()
    await plant.plan_parts()
    loop = asyncio.get_running_loop()
    write = conversion.write

    def write_then_cancel(*given: Any) -> Any:
        done = write(*given)
        asyncio.run_coroutine_threadsafe(plant.jobs.change("j1", Job.cancel), loop).result()
        return done

    monkeypatch.setattr(conversion, "write", write_then_cancel)
    await plant.work.convert("j1", 0)
    assert plant.files() == []


async def test_expired_jobs_go_with_their_files(plants: Plants) -> None:
    """Past its end a job is forgotten and its files are removed; others stay."""
    plant = plants.make()
    await plant.job("old")
    await plant.job("young", expires_at=START + timedelta(days=2))
    await plant.run("old")
    await plant.run("young")
    await DownloadExpiry(
        plant.jobs, plant.blobs, plant.quota, plant.scratch, clock=lambda: START + timedelta(days=1)
    ).run()
    assert await plant.jobs.get("old") is None
    job = await plant.stored("young")
    assert plant.files() == sorted(file.blob for _, file in job.files())


async def test_what_no_job_owns_goes_after_a_while(plants: Plants, tmp_path: Path) -> None:
    """Files and drafts that a power cut left behind are removed once no job can be writing them."""
    plant = plants.make()
    source = tmp_path / "x"
    source.write_bytes(b"x")
    await plant.blobs.upload("lost/pump/0.csv", source)
    (plant.scratch / "lost-1").mkdir(parents=True)
    (written_at,) = [blob.written_at async for blob in plant.blobs.list("")]
    await DownloadExpiry(
        plant.jobs, plant.blobs, plant.quota, plant.scratch, clock=lambda: written_at + timedelta(hours=1)
    ).run()
    assert plant.files() == ["lost/pump/0.csv"]
    await DownloadExpiry(
        plant.jobs, plant.blobs, plant.quota, plant.scratch, clock=lambda: written_at + timedelta(hours=50)
    ).run()
    assert (plant.files(), list(plant.scratch.iterdir())) == ([], [])


async def test_what_another_attempt_would_meet_again_fails_at_once(plants: Plants) -> None:
    """The end of memory fails the job in its first attempt, with an error that says what to do, and leaves no files."""
    plant = plants.make()
    plant.archive.trouble = duckdb.OutOfMemoryException("failed to pin a block")
    await plant.job(form=Format.PARQUET)
    [first, *_] = await plant.plan_parts()
    await plant.work.convert("j1", first)
    job = await plant.stored()
    assert job.status is JobStatus.FAILED
    assert "shorter range" in (job.error or "")
    assert (plant.archive.reads, plant.files(), await plant.plan_parts()) == (1, [], [])


@pytest.mark.parametrize("settled", [True, False])
async def test_a_job_tells_whether_it_has_everything(plants: Plants, *, settled: bool) -> None:
    """A job is complete up to the moment it was made where all that was accepted is archived; else it says nothing."""
    plant = plants.make()
    plant.arrivals.are_settled = settled
    made = await plant.job()
    assert made.complete_up_to is None
    assert (await plant.run()).complete_up_to == (made.created_at if settled else None)
