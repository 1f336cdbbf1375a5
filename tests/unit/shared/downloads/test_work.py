"""Tests of the steps of download jobs, each of which can be repeated."""

import asyncio
import csv
import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cold_data.reading import HourSummary
from shared.downloads import conversion
from shared.downloads.expiry import DownloadExpiry
from shared.downloads.models import DownloadFormat, Job, JobStatus
from shared.downloads.output_files import FILE_BYTES
from shared.downloads.row_feed import FeedStopped
from shared.downloads.work import PART_BYTES, PART_TIME, plan_parts
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose
from shared.runtime import Runtime
from tests.unit.shared.downloads.environment import HOUR, START, Environment, EnvironmentFactory, FakeArchive

BIG = 200_000_000
"""A size of an hour that makes each hour a part of its own, where a part may be that short."""
END = START + 100 * HOUR


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit each part of a download to one hour."""
    monkeypatch.setattr("shared.downloads.work.PART_TIME", HOUR)
    monkeypatch.setattr("shared.downloads.work.PART_BYTES", BIG)


def read_contents(environment: Environment, job: Job, connection: str) -> list[Path]:
    """Return the contents of a connection's files, and check their stated sizes."""
    found = []
    for owner, file in job.list_files():
        path = environment.folder / file.blob
        assert path.stat().st_size == file.size
        if owner == connection:
            found.append(path)
    return found


async def test_every_connection_has_a_file(environment_factory: EnvironmentFactory) -> None:
    """A small download has one file for each connection, with all its rows."""
    environment = environment_factory.make()
    await environment.store_job(form=DownloadFormat.JSONL)
    job = await environment.run()
    assert (job.status, job.row_count, job.converted_connection_count, job.error) == (JobStatus.COMPLETED, 30, 2, None)
    for connection in ("press", "pump"):
        [path] = read_contents(environment, job, connection)
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["payload"] for row in rows] == [
            {"hour": hour, "n": number} for hour in range(3) for number in range(5)
        ]
        assert {row["connection"] for row in rows} == {connection}
    assert list(environment.scratch.iterdir()) == []


async def test_a_range_includes_its_start_and_excludes_its_end(environment_factory: EnvironmentFactory) -> None:
    """The range of a download includes its start and excludes its end."""
    environment = environment_factory.make()
    await environment.store_job(start=START + timedelta(seconds=1), end=START + HOUR + timedelta(seconds=2))
    assert (await environment.run()).row_count == 2 * (4 + 2)


async def test_parts_of_a_connection_share_a_header(environment_factory: EnvironmentFactory, short_parts: None) -> None:
    """If a later CSV part has new keys, earlier parts are converted again with columns for these keys."""
    environment = environment_factory.make(
        FakeArchive(payload=lambda hour, number: {f"k{hour}": number, "n": number}, size=BIG)
    )
    await environment.store_job()
    job = await environment.run()
    assert job.parts is not None
    assert len(job.parts) == 6
    paths = read_contents(environment, job, "pump")
    heads = [path.read_text().splitlines()[0] for path in paths]
    assert heads == ["timestamp,connection,deviceId,messageId,k0,k1,k2,n"] * 3
    rows = [row for path in paths for row in csv.DictReader(path.read_text().splitlines())]
    assert [row["messageId"] for row in rows] == [f"{hour}-{number}" for hour in range(3) for number in range(5)]
    assert [row["k1"] for row in rows] == [""] * 5 + [str(number) for number in range(5)] + [""] * 5


@pytest.mark.parametrize("form", list(DownloadFormat))
async def test_download_steps_can_be_repeated(
    environment_factory: EnvironmentFactory, short_parts: None, form: DownloadFormat
) -> None:
    """Planning and converting a job again does not change the job or its files."""
    environment = environment_factory.make(FakeArchive(size=BIG))
    await environment.store_job(form=form)
    numbers = await environment.plan_parts()
    assert list(numbers) == list(await environment.plan_parts())
    for number in numbers:
        await environment.work.convert_part_unless_busy("j1", number)
    before, files = await environment.load_job(), environment.list_files()
    for number in reversed(numbers):
        await environment.work.convert_part_unless_busy("j1", number)
    assert (await environment.load_job(), environment.list_files()) == (before, files)
    await environment.work.complete_job("j1")
    await environment.work.fail_job("j1")
    assert (await environment.load_job()).status is JobStatus.COMPLETED


async def test_a_download_of_an_empty_range_completes(environment_factory: EnvironmentFactory) -> None:
    """A download of connections without rows completes with one file per connection."""
    environment = environment_factory.make(FakeArchive(per_hour=0))
    await environment.store_job()
    job = await environment.run()
    assert (job.status, job.row_count, len(job.list_files())) == (JobStatus.COMPLETED, 0, 2)


async def test_an_archive_outage_is_raised_so_that_the_step_is_retried(environment_factory: EnvironmentFactory) -> None:
    """If the archive is unavailable, the step raises an error, and a retry continues the job."""
    archive = FakeArchive()
    environment = environment_factory.make(archive)
    await environment.store_job()
    archive.down = True
    await environment.plan_parts()
    with pytest.raises(WorkspaceError, match="down"):
        await environment.work.convert_part_unless_busy("j1", 0)
    assert (await environment.load_job()).status is JobStatus.RUNNING
    archive.down = False
    assert (await environment.run()).status is JobStatus.COMPLETED
    assert list(environment.scratch.iterdir()) == []


async def test_failed_job_has_no_files(environment_factory: EnvironmentFactory) -> None:
    """A failed job shows no internal causes, and its files are deleted."""
    environment = environment_factory.make()
    await environment.store_job()
    await environment.plan_parts()
    await environment.work.convert_part_unless_busy("j1", 0)
    assert environment.list_files()
    await environment.work.fail_job("j1")
    job = await environment.load_job()
    assert (job.status, environment.list_files()) == (JobStatus.FAILED, [])
    assert job.error is not None
    assert "log" in job.error
    assert await environment.plan_parts() == []


async def test_too_many_columns_fail_the_job(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a download needs too many columns, it fails at once with the reason and its code, without retries."""
    monkeypatch.setattr("shared.downloads.flattening.MAX_LEAVES", 8)
    environment = environment_factory.make(FakeArchive(payload=lambda hour, number: {f"k{hour}-{number}": 1}))
    await environment.store_job()
    job = await environment.run()
    assert job.status is JobStatus.FAILED
    assert job.error_code == "DOWNLOAD_TOO_WIDE"
    assert "use jsonl or parquet" in (job.error or "")


async def test_cancelled_conversion_stops_without_files(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a job is cancelled during a conversion, the step stops and leaves no files."""
    monkeypatch.setattr("shared.downloads.work.POLL_SECONDS", 0.01)
    environment = environment_factory.make(FakeArchive(hours=2, per_hour=1))
    begun, go_on = asyncio.Event(), asyncio.Event()
    rows = environment.archive.stream_rows

    async def yield_forever(connection: str, *bounds: Any) -> Any:
        while True:
            async for batch in rows(connection, *bounds):
                yield pa.concat_batches([batch] * 10_000)
            begun.set()

    monkeypatch.setattr(environment.archive, "stream_rows", yield_forever)
    await environment.store_job(form=DownloadFormat.JSONL)
    await environment.plan_parts()
    step = asyncio.create_task(environment.work.convert_part_unless_busy("j1", 0))
    await begun.wait()
    go_on.set()
    await environment.jobs.change("j1", Job.cancel)
    await asyncio.wait_for(step, 30)
    assert ((await environment.load_job()).status, environment.list_files()) == (JobStatus.CANCELLED, [])
    assert list(environment.scratch.iterdir()) == []


async def test_files_uploaded_during_cancellation_are_deleted(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a job is cancelled while a step uploads files, the step deletes them."""
    environment = environment_factory.make()
    await environment.store_job()
    await environment.plan_parts()
    loop = asyncio.get_running_loop()
    write = conversion.write_files

    def write_then_cancel(*given: Any) -> Any:
        done = write(*given)
        asyncio.run_coroutine_threadsafe(environment.jobs.change("j1", Job.cancel), loop).result()
        return done

    monkeypatch.setattr(conversion, "write_files", write_then_cancel)
    await environment.work.convert_part_unless_busy("j1", 0)
    assert environment.list_files() == []


async def test_a_repeated_step_of_a_cancelled_job_releases_its_quota(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the clean-up after a cancellation fails, the repeated step deletes the files and releases the quota."""
    environment = environment_factory.make()
    await environment.store_job()
    [first, _] = await environment.plan_parts()
    upload = environment.blobs.upload

    async def cancel_before_upload(blob: str, path: Path) -> None:
        await environment.jobs.change("j1", Job.cancel)
        await upload(blob, path)

    async def fail(names: Sequence[str]) -> None:
        raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", f"{len(names)} files")

    monkeypatch.setattr(environment.blobs, "upload", cancel_before_upload)
    with monkeypatch.context() as outage:
        outage.setattr(environment.blobs, "delete", fail)
        with pytest.raises(WorkspaceError, match="1 files"):
            await environment.work.convert_part_unless_busy("j1", first)
    await environment.work.convert_part_unless_busy("j1", first)
    assert environment.list_files() == []
    assert await environment.places.list_reservations("editor@t", Purpose.JOBS) == []


@pytest.mark.parametrize(
    ("ending", "stops"),
    [(JobStatus.RUNNING, False), (JobStatus.COMPLETED, False), (JobStatus.COMPLETED, True)],
    ids=["running", "completed", "completed, conversion stopped"],
)
async def test_a_slow_process_leaves_the_files_of_a_faster_one(
    environment_factory: EnvironmentFactory, monkeypatch: pytest.MonkeyPatch, *, ending: JobStatus, stops: bool
) -> None:
    """If two processes convert a part at the same time, the slower one leaves only the files of the faster one."""
    slow, fast = environment_factory.make(), environment_factory.make()
    await slow.store_job(form=DownloadFormat.PARQUET)
    first, second = await slow.plan_parts()
    await slow.work.convert_part_unless_busy("j1", second)
    loop = asyncio.get_running_loop()
    write = conversion.write_files

    async def overtake() -> None:
        monkeypatch.setattr(conversion, "write_files", write)
        fast.archive.per_hour += 1
        await fast.work.convert_part_unless_busy("j1", first)
        if ending is JobStatus.COMPLETED:
            await fast.work.complete_job("j1")

    def write_slowly(*given: Any) -> Any:
        written = write(*given)
        asyncio.run_coroutine_threadsafe(overtake(), loop).result()
        if stops:
            raise FeedStopped
        return written

    monkeypatch.setattr(conversion, "write_files", write_slowly)
    await slow.work.convert_part_unless_busy("j1", first)
    job = await slow.load_job()
    assert (job.status, job.row_count) == (ending, 18 + 15)
    assert slow.list_files() == sorted(file.blob for _, file in job.list_files())
    for _, file in job.list_files():
        assert hashlib.sha256((slow.folder / file.blob).read_bytes()).hexdigest() == file.sha256


@pytest.mark.parametrize("form", list(DownloadFormat))
async def test_a_converted_part_is_not_converted_again(
    environment_factory: EnvironmentFactory, form: DownloadFormat
) -> None:
    """A repeated step does not read the archive again if the job has the files of its part."""
    environment = environment_factory.make()
    await environment.store_job(form=form)
    [first, _] = await environment.plan_parts()
    await environment.work.convert_part_unless_busy("j1", first)
    reads = environment.archive.reads
    await environment.work.convert_part_unless_busy("j1", first)
    assert environment.archive.reads == reads


async def test_replaced_and_abandoned_files_are_deleted(
    environment_factory: EnvironmentFactory, short_parts: None, tmp_path: Path
) -> None:
    """A new conversion deletes the files that it replaces; the end of a job deletes the files of failed processes."""
    environment = environment_factory.make(
        FakeArchive(payload=lambda hour, number: {f"k{hour}": number, "n": number}, size=BIG)
    )
    await environment.store_job()
    while numbers := await environment.plan_parts():
        for number in numbers:
            await environment.work.convert_part_unless_busy("j1", number)
        job = await environment.load_job()
        assert environment.list_files() == sorted(file.blob for _, file in job.list_files())
    abandoned = tmp_path / "abandoned"
    abandoned.write_bytes(b"x")
    await environment.blobs.upload("j1/pump/00000-other-00000.csv", abandoned)
    await environment.work.complete_job("j1")
    job = await environment.load_job()
    assert environment.list_files() == sorted(file.blob for _, file in job.list_files())


async def test_expired_jobs_are_deleted_with_their_files(environment_factory: EnvironmentFactory) -> None:
    """Expired jobs and their files are deleted; other jobs stay."""
    environment = environment_factory.make()
    await environment.store_job("old")
    await environment.store_job("young", expires_at=START + timedelta(days=2))
    await environment.run("old")
    await environment.run("young")
    await DownloadExpiry(
        environment.jobs,
        environment.blobs,
        environment.quota,
        environment.scratch,
        runtime=Runtime(now=lambda: START + timedelta(days=1)),
    ).delete_expired_jobs_and_files()
    assert await environment.jobs.find_job("old") is None
    job = await environment.load_job("young")
    assert environment.list_files() == sorted(file.blob for _, file in job.list_files())


async def test_orphan_files_are_deleted(environment_factory: EnvironmentFactory, tmp_path: Path) -> None:
    """Files and folders without a job are deleted when they are too old for a running job."""
    environment = environment_factory.make()
    source = tmp_path / "x"
    source.write_bytes(b"x")
    await environment.blobs.upload("lost/pump/0.csv", source)
    (environment.scratch / "lost-1").mkdir(parents=True)
    (written_at,) = [blob.written_at async for blob in environment.blobs.list("")]
    await DownloadExpiry(
        environment.jobs,
        environment.blobs,
        environment.quota,
        environment.scratch,
        runtime=Runtime(now=lambda: written_at + timedelta(hours=1)),
    ).delete_expired_jobs_and_files()
    assert environment.list_files() == ["lost/pump/0.csv"]
    await DownloadExpiry(
        environment.jobs,
        environment.blobs,
        environment.quota,
        environment.scratch,
        runtime=Runtime(now=lambda: written_at + timedelta(hours=50)),
    ).delete_expired_jobs_and_files()
    assert (environment.list_files(), list(environment.scratch.iterdir())) == ([], [])


async def test_out_of_memory_fails_the_job_immediately(environment_factory: EnvironmentFactory) -> None:
    """If memory is exhausted, the job fails without a retry, with advice and without files."""
    environment = environment_factory.make()
    environment.archive.trouble = duckdb.OutOfMemoryException("failed to pin a block")
    await environment.store_job(form=DownloadFormat.PARQUET)
    [first, *_] = await environment.plan_parts()
    await environment.work.convert_part_unless_busy("j1", first)
    job = await environment.load_job()
    assert job.status is JobStatus.FAILED
    assert job.error_code == "DOWNLOAD_OUT_OF_MEMORY"
    assert "shorter range" in (job.error or "")
    assert (environment.archive.reads, environment.list_files(), await environment.plan_parts()) == (1, [], [])


@pytest.mark.parametrize("settled", [True, False])
async def test_complete_up_to_requires_archived_events(
    environment_factory: EnvironmentFactory, *, settled: bool
) -> None:
    """``complete_up_to`` is the job's creation time if all earlier events are archived, else None."""
    environment = environment_factory.make()
    environment.arrivals.are_settled = settled
    made = await environment.store_job()
    assert made.complete_up_to is None
    assert (await environment.run()).complete_up_to == (made.created_at if settled else None)


@pytest.mark.parametrize("form", list(DownloadFormat))
@given(sizes=st.lists(st.integers(0, 400_000_000), max_size=40))
def test_parts_cover_the_range_without_gaps(form: DownloadFormat, sizes: list[int]) -> None:
    """The parts of a job follow each other from start to end, and none exceeds the expected size."""
    list_hours = [HourSummary(START + number * HOUR, 0, size) for number, size in enumerate(sizes)]
    planned = plan_parts("pump", START + timedelta(minutes=5), END, form, list_hours)
    assert planned[0].start == START + timedelta(minutes=5)
    assert planned[-1].end == END
    assert all(one.end == following.start for one, following in pairwise(planned))
    assert all(part.start < part.end for part in planned)
    if sum(sizes) <= FILE_BYTES:
        assert len(planned) == 1
    for part in planned[:-1]:
        assert part.end - part.start >= PART_TIME
    for part in planned:
        late = [each.size for each in list_hours if part.start + PART_TIME <= each.start < part.end]
        assert not late or sum(late) <= PART_BYTES


def test_rows_have_a_minimum_size_despite_compression() -> None:
    """For CSV and NDJSON files, each row counts with a minimum size, even if it is compressed well."""
    list_hours = [HourSummary(START + number * 24 * HOUR, 6_000_000, 1) for number in range(10)]
    end = START + 240 * HOUR
    assert len(plan_parts("pump", START, end, DownloadFormat.PARQUET, list_hours)) == 1
    assert len(plan_parts("pump", START, end, DownloadFormat.CSV, list_hours)) == 5
    assert len(plan_parts("pump", START, end, DownloadFormat.JSONL, list_hours)) == 10
