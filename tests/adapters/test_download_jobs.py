"""Tests that every store of download and import jobs meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.backends.azure import cosmos_jobs
from shared.backends.azure.cosmos_jobs import LONG_BYTES, CosmosJobStore
from shared.backends.embedded.jobs import SCHEMA, SqliteJobStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest, ImportStep, UploadedFile
from shared.downloads.models import DownloadFormat, Job, Part, StoredFile
from shared.downloads.ports import JobStore
from shared.errors import WorkspaceError
from tests.adapters.cosmos import KINDS, open_accounts

START = datetime(2026, 1, 5, 0, 0, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
type Opener = Callable[[], JobStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> JobStore:
            if account:
                return CosmosJobStore(account())
            database = SqliteDatabase(tmp_path / "jobs.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return SqliteJobStore(database)

        yield open_another


@pytest.fixture
def store(open_store: Opener) -> JobStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


def build_job(job_id: str = "j1", **changes: Any) -> Job:
    made = Job(
        id=job_id,
        owner="editor@t",
        format=DownloadFormat.CSV,
        start=START,
        end=START + 3 * HOUR,
        connections=("press", "pump"),
        created_at=START,
        expires_at=START + timedelta(days=1),
    )
    return made.model_copy(update=changes)


async def create_stored_job(store: JobStore, job_id: str = "j1") -> Job:
    found = await store.find_job(job_id)
    assert found is not None
    return found


async def test_a_job_is_loaded_as_stored(open_store: Opener) -> None:
    """Another process loads a job with all attributes; an owner's jobs are listed newest first."""
    store, other = open_store(), open_store()
    first = build_job("a", leaves={"pump": (("x", "y"), ("",))})
    second = build_job("b", created_at=START + HOUR)
    for each in (first, second, build_job("c", owner="somebody")):
        await store.create(each)
    assert await other.find_job("a") == first
    assert list(await other.list_jobs_of_owner("editor@t")) == [second, first]
    assert await other.find_job("nowhere") is None
    assert await other.change("nowhere", Job.cancel) is None
    await other.delete("a")
    await other.delete("a")
    assert list(await store.list_jobs_of_owner("editor@t")) == [second]


async def test_starting_an_import_postpones_its_expiry(open_store: Opener) -> None:
    """Starting an import postpones its expiry; repeating a step of the import does not count its rows again."""
    store, other = open_store(), open_store()
    request = ImportRequest(
        format=ImportFormat.CSV,
        file_name="a.csv",
        mapping=ImportMapping(timestamp="t", columns=("x",)),
        upload_expires_at=START + timedelta(days=1),
    )
    await store.create(build_job(import_request=request))
    file, later = UploadedFile(size=10, written_at=START), START + timedelta(days=2)
    step = ImportStep(next_position=7, rows=5, accepted=3, duplicates=1, rejected=1)
    await store.change("j1", lambda job: job.start_import(START + HOUR, later, file, None))
    for _ in range(2):
        await store.change("j1", lambda job: job.add_import_step_result(0, step))
    assert list(await other.list_expired_job_ids(START + timedelta(days=1))) == []
    assert list(await other.list_expired_job_ids(later)) == ["j1"]
    stored = (await create_stored_job(other)).import_request
    assert stored is not None
    assert (stored.file, stored.started_at, stored.mapping) == (file, START + HOUR, request.mapping)
    assert (stored.steps, stored.position, stored.rows, stored.accepted) == (1, 7, 5, 3)


async def test_a_job_is_created_once(store: JobStore) -> None:
    """A second job with the same id is rejected, and the first job is unchanged."""
    await store.create(build_job())
    with pytest.raises(WorkspaceError) as failure:
        await store.create(build_job(owner="somebody"))
    assert failure.value.code == "DOWNLOADS_UNAVAILABLE"
    assert (await create_stored_job(store)).owner == "editor@t"


async def test_concurrent_changes_of_a_job_are_all_stored(open_store: Opener) -> None:
    """If two processes change a job at the same time, both changes are stored."""
    stores = (open_store(), open_store())
    part = Part(connection="pump", start=START, end=START + HOUR)
    await stores[0].create(build_job(parts=(part,) * 20))

    async def complete_part(number: int) -> None:
        leaf = frozenset({(f"k{number}",)})
        await stores[number % 2].change("j1", lambda job: job.complete_part(number, (), leaf))

    await asyncio.gather(*(complete_part(number) for number in range(20)))
    changed = await create_stored_job(stores[0])
    assert all(each.files == () for each in changed.parts or ())
    assert len(changed.leaves["pump"]) == 20


async def test_an_exception_while_changing_a_job_stores_nothing(store: JobStore) -> None:
    """If the function that changes a job raises an exception, the caller gets it, and the job stays unchanged."""
    await store.create(build_job())
    await store.change("j1", Job.cancel)
    before = await create_stored_job(store)
    with pytest.raises(WorkspaceError, match="already ended"):
        await store.change("j1", Job.cancel)
    assert await create_stored_job(store) == before


async def test_expired_jobs_are_listed(store: JobStore) -> None:
    """From its expiry time on, a job is listed as expired."""
    made = build_job()
    await store.create(made)
    assert list(await store.list_expired_job_ids(made.expires_at - timedelta(microseconds=1))) == []
    assert list(await store.list_expired_job_ids(made.expires_at)) == ["j1"]


async def test_a_large_job_is_stored(store: JobStore) -> None:
    """A job with thousands of parts and files is stored completely."""
    file = StoredFile(blob="j1/pump-0001.csv", rows=10**9, size=10**12, sha256="ab" * 32)
    parts = tuple(Part(connection="pump", start=START, end=START + HOUR, files=(file,)) for _ in range(5_000))
    made = build_job(parts=parts)
    assert len(made.model_dump_json()) > 4 * LONG_BYTES
    await store.create(made)
    assert await create_stored_job(store) == made
    await store.change("j1", Job.cancel)
    assert await create_stored_job(store) == made.cancel()


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unchanged_large_job_is_parsed_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a large job again does not parse it, unless another process has changed it."""
    parsed: list[object] = []
    parse = cosmos_jobs._job_from_item

    def parse_and_record(item: dict[str, Any]) -> Job:
        parsed.append(item)
        return parse(item)

    monkeypatch.setattr(cosmos_jobs, "_job_from_item", parse_and_record)
    async with open_accounts(kind) as account:
        store, other = CosmosJobStore(account()), CosmosJobStore(account())
        await store.create(build_job(connections=tuple(f"connection-{number}" for number in range(20_000))))
        first = await store.find_job("j1")
        assert await store.find_job("j1") is first
        assert len(parsed) == 1
        await other.change("j1", Job.cancel)
        changed = await store.find_job("j1")
        assert changed is not None
        assert not changed.is_unfinished
