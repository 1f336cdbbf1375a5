"""Tests of stored replies: one request does the work, and retries wait for its reply."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from shared.backends.embedded.idempotency import SCHEMA, SqliteReplyStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import Kind, WorkspaceError
from shared.idempotency import replies
from shared.idempotency.replies import IdempotentReplies
from shared.runtime import SYSTEM_RUNTIME, Runtime
from tests.virtual_time import VirtualTime

SECRET = b"oik_AAAAAAAA_secret"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteReplyStore]:
    """Return an empty store."""
    database = SqliteDatabase(tmp_path / "answers.sqlite", SCHEMA)
    yield SqliteReplyStore(database)
    await database.close()


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the lease and the waiting time."""
    monkeypatch.setattr(replies, "LEASE", timedelta(seconds=1))
    monkeypatch.setattr(replies, "WAIT_SECONDS", 2)


async def run_request(
    store: SqliteReplyStore,
    work: Callable[[str], Awaitable[bytes]],
    *,
    key: str = "k",
    caller: str = "a",
    request: bytes = b"r",
    runtime: Runtime = SYSTEM_RUNTIME,
) -> bytes:
    """Run a request with a new executor, as another process does."""
    return await IdempotentReplies(store, runtime=runtime).run_once_and_get_reply(caller, "POST", key, request, work)


class Worker:
    """Fake work of a request, which counts its calls and records their ids."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def __call__(self, work_id: str) -> bytes:
        """Count the call, record its id, and return the number of calls so far."""
        self.ids.append(work_id)
        await asyncio.sleep(0.02)
        return SECRET + b"%d" % len(self.ids)


async def test_concurrent_requests_share_one_result(store: SqliteReplyStore) -> None:
    """Concurrent and later requests with one Idempotency-Key get the same reply, and the work runs once."""
    worker = Worker()
    results = await asyncio.gather(*(run_request(store, worker) for _ in range(8)))
    assert {*results, await run_request(store, worker)} == {SECRET + b"1"}
    assert len(worker.ids) == 1


async def test_a_key_reused_for_a_different_request_is_rejected(store: SqliteReplyStore) -> None:
    """An Idempotency-Key is rejected for a different request of the same caller; each caller has separate keys."""
    worker = Worker()
    await run_request(store, worker)
    with pytest.raises(WorkspaceError) as caught:
        await run_request(store, worker, request=b"other")
    assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"
    assert await run_request(store, worker, caller="b", request=b"other") == SECRET + b"2"


async def test_a_rejected_request_releases_its_idempotency_key(store: SqliteReplyStore) -> None:
    """After a rejection, another request can use the same Idempotency-Key."""

    async def raise_rejection(_: str) -> bytes:
        raise WorkspaceError(Kind.INVALID, "X", "x")

    with pytest.raises(WorkspaceError):
        await run_request(store, raise_rejection)
    assert await run_request(store, Worker(), request=b"corrected") == SECRET + b"1"


async def test_a_rejected_retry_keeps_its_idempotency_key(store: SqliteReplyStore) -> None:
    """If a retry is rejected after an attempt that is possibly done, the next retry does the work with the same id."""
    worker = Worker()

    async def fail_after_work(work_id: str) -> bytes:
        await worker(work_id)
        raise WorkspaceError(Kind.UNAVAILABLE, "X", "x")

    async def raise_rejection(_: str) -> bytes:
        raise WorkspaceError(Kind.INVALID, "X", "x")

    for work in (fail_after_work, raise_rejection):
        with pytest.raises(WorkspaceError):
            await run_request(store, work)
    await run_request(store, worker)
    assert len(set(worker.ids)) == 1


@pytest.mark.parametrize("error", [WorkspaceError(Kind.UNAVAILABLE, "X", "x"), asyncio.CancelledError(), OSError()])
async def test_failed_work_is_repeated_with_the_same_id(store: SqliteReplyStore, error: BaseException) -> None:
    """If work fails and is possibly half done, its key stays reserved, and a retry repeats it with the same id."""
    ids = []

    async def raise_error(work_id: str) -> bytes:
        ids.append(work_id)
        raise error

    with pytest.raises(type(error)):
        await run_request(store, raise_error)
    worker = Worker()
    with pytest.raises(WorkspaceError):
        await run_request(store, worker, request=b"other")
    await run_request(store, worker)
    assert worker.ids == ids


async def test_a_retry_takes_over_the_work_of_a_crashed_process(store: SqliteReplyStore, short_timeouts: None) -> None:
    """If a process crashes, a retry repeats the work with the same id after the lease has expired."""
    ids = []

    async def crash_process(work_id: str) -> bytes:
        ids.append(work_id)
        renewals = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        [task.cancel() for task in renewals if "renew" in repr(task)]
        await asyncio.sleep(3_600)
        return b""

    dead = asyncio.create_task(run_request(store, crash_process))
    while not ids:  # noqa: ASYNC110  the other task sets it
        await asyncio.sleep(0.01)
    worker = Worker()
    assert await run_request(store, worker) == SECRET + b"1"
    assert worker.ids == ids
    dead.cancel()


async def test_a_slow_process_renews_its_lease(store: SqliteReplyStore, short_timeouts: None) -> None:
    """While a slow request renews its lease, a retry waits, and gets 409 after the time limit."""
    finish = asyncio.Event()

    async def work_slowly(_: str) -> bytes:
        await finish.wait()
        return b"first"

    first = asyncio.create_task(run_request(store, work_slowly))
    await asyncio.sleep(0)
    with pytest.raises(WorkspaceError) as caught:
        await run_request(store, Worker())
    assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "IDEMPOTENCY_KEY_IN_USE")
    finish.set()
    assert await first == await run_request(store, Worker()) == b"first"


async def test_the_reply_of_the_lease_holder_is_returned(store: SqliteReplyStore) -> None:
    """If a process loses its lease, it returns the reply of the process that took over the work."""

    async def lose_lease(work_id: str) -> bytes:
        async with asyncio.timeout(10):
            await store._execute_update_and_test_for_change("UPDATE answers SET leased_until = ''")
            assert await run_request(store, Worker()) == SECRET + b"1"
        return b"late"

    assert await run_request(store, lose_lease) == SECRET + b"1"


async def test_a_request_that_lost_its_lease_keeps_its_reply(store: SqliteReplyStore) -> None:
    """If a request did its work and lost its lease to a repeat that is rejected, its reply is stored and returned."""
    runs = list[str]()

    async def raise_rejection(work_id: str) -> bytes:
        runs.append(work_id)
        raise WorkspaceError(Kind.CONFLICT, "X", "x")

    async def lose_lease_in_first_run(work_id: str) -> bytes:
        await store._execute_update_and_test_for_change("UPDATE answers SET leased_until = ''")
        with pytest.raises(WorkspaceError):
            await run_request(store, raise_rejection)
        return b"done"

    assert await run_request(store, lose_lease_in_first_run) == b"done"
    assert await run_request(store, raise_rejection) == b"done"
    assert len(runs) == 1
    with pytest.raises(WorkspaceError) as caught:
        await run_request(store, Worker(), request=b"other")
    assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"


async def test_stored_replies_and_keys_are_encrypted(store: SqliteReplyStore, tmp_path: Path) -> None:
    """The stored file contains neither the reply nor the Idempotency-Key in plain text."""
    await run_request(store, Worker(), key="a long random key")
    content = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir()))
    assert b"answers" in content
    assert b"oik_" not in content
    assert b"random key" not in content


async def test_stored_replies_expire_after_24_hours(store: SqliteReplyStore) -> None:
    """A request repeated within 24 hours gets the stored reply; later, another request can use the Idempotency-Key."""
    worker, time = Worker(), VirtualTime()
    await run_request(store, worker, runtime=time.runtime)
    time.advance(timedelta(hours=23, minutes=59).total_seconds())
    assert await run_request(store, worker, runtime=time.runtime) == SECRET + b"1"
    time.advance(timedelta(minutes=2).total_seconds())
    assert await run_request(store, worker, request=b"other", runtime=time.runtime) == SECRET + b"2"
