"""IdempotentReplies that are given again: one does the work, repeats wait, and a crash in the middle is survived."""

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

SECRET = b"oik_AAAAAAAA_secret"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteReplyStore]:
    """An empty store."""
    database = SqliteDatabase(tmp_path / "answers.sqlite", SCHEMA)
    yield SqliteReplyStore(database)
    await database.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases and patience that end soon."""
    monkeypatch.setattr(replies, "LEASE", timedelta(seconds=0.2))
    monkeypatch.setattr(replies, "WAIT_SECONDS", 0.5)


async def run_once(
    store: SqliteReplyStore,
    work: Callable[[str], Awaitable[bytes]],
    *,
    key: str = "k",
    caller: str = "a",
    request: bytes = b"r",
) -> bytes:
    """Ask as one process does."""
    return await IdempotentReplies(store).run_once(caller, "POST", key, request, work)


class Worker:
    """Counts what it does, and tells under which ids."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def __call__(self, same: str) -> bytes:
        """Answer with the number of times that it was asked."""
        self.ids.append(same)
        await asyncio.sleep(0.02)
        return SECRET + b"%d" % len(self.ids)


async def test_of_many_at_once_one_works(store: SqliteReplyStore) -> None:
    """Everybody gets the same answer, from work done once; later repeats too."""
    worker = Worker()
    given = await asyncio.gather(*(run_once(store, worker) for _ in range(8)))
    assert {*given, await run_once(store, worker)} == {SECRET + b"1"}
    assert len(worker.ids) == 1


async def test_another_request_under_the_key_is_refused(store: SqliteReplyStore) -> None:
    """The key stands for its first request; another caller's key is another key."""
    worker = Worker()
    await run_once(store, worker)
    with pytest.raises(WorkspaceError) as caught:
        await run_once(store, worker, request=b"other")
    assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"
    assert await run_once(store, worker, caller="b", request=b"other") == SECRET + b"2"


async def test_a_refusal_leaves_the_key_free(store: SqliteReplyStore) -> None:
    """After a refusal the corrected request goes through under the same key."""

    async def refuse(_: str) -> bytes:
        raise WorkspaceError(Kind.INVALID, "X", "x")

    with pytest.raises(WorkspaceError):
        await run_once(store, refuse)
    assert await run_once(store, Worker(), request=b"corrected") == SECRET + b"1"


@pytest.mark.parametrize("error", [WorkspaceError(Kind.UNAVAILABLE, "X", "x"), asyncio.CancelledError(), OSError()])
async def test_work_that_failed_is_done_again_under_its_id(store: SqliteReplyStore, error: BaseException) -> None:
    """What may be half done keeps its id, and stands for its request alone."""
    ids = []

    async def fail(same: str) -> bytes:
        ids.append(same)
        raise error

    with pytest.raises(type(error)):
        await run_once(store, fail)
    worker = Worker()
    with pytest.raises(WorkspaceError):
        await run_once(store, worker, request=b"other")
    await run_once(store, worker)
    assert worker.ids == ids


async def test_a_process_that_died_is_taken_over(store: SqliteReplyStore, quick: None) -> None:
    """Its lease runs out, and a repeat does the work under the same id."""
    ids = []

    async def die(same: str) -> bytes:
        ids.append(same)
        renewals = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        [task.cancel() for task in renewals if "renew" in repr(task)]
        await asyncio.sleep(3_600)
        return b""

    dead = asyncio.create_task(run_once(store, die))
    while not ids:  # noqa: ASYNC110  the other task sets it
        await asyncio.sleep(0.01)
    worker = Worker()
    assert await run_once(store, worker) == SECRET + b"1"
    assert worker.ids == ids
    dead.cancel()


async def test_a_slow_process_keeps_its_lease(store: SqliteReplyStore, quick: None) -> None:
    """While the first is at work a repeat waits, and hears 409 when that takes too long."""
    finish = asyncio.Event()

    async def slow(_: str) -> bytes:
        await finish.wait()
        return b"first"

    first = asyncio.create_task(run_once(store, slow))
    await asyncio.sleep(0)
    with pytest.raises(WorkspaceError) as caught:
        await run_once(store, Worker())
    assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "IDEMPOTENCY_KEY_IN_USE")
    finish.set()
    assert await first == await run_once(store, Worker()) == b"first"


async def test_who_lost_the_lease_gives_the_others_answer(store: SqliteReplyStore) -> None:
    """Two that worked because one seemed dead give one answer."""

    async def taken_over(same: str) -> bytes:
        async with asyncio.timeout(10):
            await store._change("UPDATE answers SET leased_until = ''")
            assert await run_once(store, Worker()) == SECRET + b"1"
        return b"late"

    assert await run_once(store, taken_over) == SECRET + b"1"


async def test_secrets_are_not_to_be_read_in_the_file(store: SqliteReplyStore, tmp_path: Path) -> None:
    """Neither the answer nor the caller's key stands in the file."""
    await run_once(store, Worker(), key="a long random key")
    content = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.iterdir()))
    assert b"answers" in content
    assert b"oik_" not in content
    assert b"random key" not in content


async def test_answers_are_forgotten_after_a_day(store: SqliteReplyStore) -> None:
    """A key is free again, and its answer gone."""
    worker = Worker()
    await run_once(store, worker)
    await store._change("UPDATE answers SET made_at = '2020-01-01T00:00:00.000000Z'")
    assert await run_once(store, worker, request=b"other") == SECRET + b"2"
