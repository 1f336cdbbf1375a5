"""Tests of the sources of time, randomness and threads."""

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import pytest

from shared import runtime as runtime_module
from shared.fair_use.acting_member import use_acting_member
from shared.fair_use.fair_scheduler import FairScheduler
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime, run_in_turn
from tests.busy_executor import BusyExecutor
from tests.inline_executor import InlineExecutor


def list_folders(parent: Path) -> list[Path]:
    """Return the folders in a folder."""
    return list(parent.iterdir())


def test_large_work_runs_in_a_thread() -> None:
    """Work on a large text runs in a worker thread, and work on a small text in the thread of the event loop."""

    async def find_threads() -> tuple[int, int]:
        run = SYSTEM_RUNTIME.run_in_thread_if_large
        return await run(LARGE - 1, threading.get_ident), await run(LARGE, threading.get_ident)

    small, large = asyncio.run(find_threads())
    assert small == threading.get_ident() != large


def test_arguments_and_errors_are_passed_through() -> None:
    """A function that runs in a thread gets all arguments, and an error that it raises reaches the caller."""
    assert asyncio.run(SYSTEM_RUNTIME.run_in_thread_if_large(LARGE, int, "ff", base=16)) == 255
    assert asyncio.run(SYSTEM_RUNTIME.run_in_thread(int, "ff", base=16)) == 255
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(SYSTEM_RUNTIME.run_in_thread_if_large(LARGE, int, "x"))
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(SYSTEM_RUNTIME.run_in_thread(int, "x"))


async def test_work_in_threads_sees_the_context_of_the_caller() -> None:
    """Work in a thread has the caller's context variables."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("caller")
    assert await SYSTEM_RUNTIME.run_in_thread(variable.get) == "caller"
    assert await SYSTEM_RUNTIME.run_in_thread_if_large(LARGE, variable.get) == "caller"


async def test_large_texts_of_one_member_leave_a_thread_for_others() -> None:
    """While many large texts of a member wait, one of them is processed, and the text of another member starts."""
    threads = BusyExecutor()
    runtime = Runtime(open_pool=lambda *_: threads)

    async def start(member: str) -> asyncio.Task[int]:
        with use_acting_member(member):
            task = asyncio.create_task(runtime.run_in_thread_if_large(LARGE, threading.get_ident))
        await asyncio.sleep(0)
        return task

    tasks = [await start("ann") for _ in range(60)]
    assert len(threads.jobs) == 1
    tasks.append(await start("bob"))
    assert len(threads.jobs) == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_cancelled_principal_occupies_its_slot_until_the_thread_has_finished() -> None:
    """If a caller is cancelled while a thread works, the next work of the principal starts after this work."""
    turns, threads = FairScheduler(2, leaves_slots_free=True), BusyExecutor()

    async def start() -> asyncio.Task[int]:
        task = asyncio.create_task(run_in_turn(turns, "ann", threads, threading.get_ident))
        await asyncio.sleep(0)
        return task

    first = await start()
    assert threads.jobs[0].set_running_or_notify_cancel()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = await start()
    assert len(threads.jobs) == 1
    threads.jobs[0].set_result(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(threads.jobs) == 2
    threads.jobs[1].set_result(2)
    assert await second == 2
    assert first.cancelled()


async def test_executors_can_run_inline() -> None:
    """If the runtime has inline executors, they run work for worker threads in the thread of the event loop."""
    runtime = Runtime(threads=InlineExecutor(), open_pool=lambda _count, _name: InlineExecutor())
    assert await runtime.run_in_thread(threading.get_ident) == threading.get_ident()
    assert await runtime.run_in_thread_if_large(LARGE, threading.get_ident) == threading.get_ident()


async def test_work_in_threads_does_not_use_the_default_executor_of_the_event_loop() -> None:
    """Work for worker threads leaves the event loop's default executor free for the HTTP clients' look-ups."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, "look-ups"))
    names = {
        await SYSTEM_RUNTIME.run_in_thread(lambda: threading.current_thread().name),
        await SYSTEM_RUNTIME.run_in_thread_if_large(LARGE, lambda: threading.current_thread().name),
    }
    assert not any(name.startswith("look-ups") for name in names)


def test_ids_and_tokens_come_from_the_random_bytes() -> None:
    """Ids and tokens depend only on the random bytes of the runtime; an id is a UUID of version 4."""
    runtime = Runtime(random_bytes=lambda size: bytes(range(size)))
    assert runtime.new_id() == "000102030405460788090a0b0c0d0e0f"
    assert runtime.new_uuid() == UUID(runtime.new_id())
    assert runtime.new_uuid().version == 4
    assert runtime.new_token(4) == "AAECAw"
    assert SYSTEM_RUNTIME.new_id() != SYSTEM_RUNTIME.new_id()


async def test_a_scratch_folder_is_deleted_by_a_worker_thread(tmp_path: Path) -> None:
    """A worker thread creates a scratch folder in the given parent folder, and deletes it with its files."""

    class CountingExecutor(InlineExecutor):
        """Executor that counts jobs."""

        jobs = 0

        def submit[**P, T](self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
            self.jobs += 1
            return super().submit(work, *args, **kwargs)

    executor = CountingExecutor()
    async with AsyncExitStack() as stack:
        folder = await stack.enter_async_context(
            Runtime(threads=executor).open_scratch_folder(tmp_path / "parent", "work-")
        )
        assert folder.parent == tmp_path / "parent"
        (folder / "rows").write_bytes(b"1")
        assert executor.jobs == 1
    assert not folder.exists()
    assert executor.jobs == 2


@pytest.mark.parametrize("when", ["before the creation", "before its result is used"])
async def test_no_scratch_folder_remains_if_its_creation_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A scratch folder whose creator was cancelled meanwhile is deleted, without a warning of the garbage collector."""
    begun, go_on = threading.Event(), threading.Event()
    genuine = runtime_module._create_scratch_folder

    def create_slowly(parent: Path | None, prefix: str) -> "TemporaryDirectory[str]":
        folder = genuine(parent, prefix) if when == "before its result is used" else None
        begun.set()
        go_on.wait()
        return folder or genuine(parent, prefix)

    monkeypatch.setattr(runtime_module, "_create_scratch_folder", create_slowly)
    with ThreadPoolExecutor(1) as threads:
        runtime = Runtime(threads=threads)
        opening = asyncio.create_task(AsyncExitStack().enter_async_context(runtime.open_scratch_folder(tmp_path, "w-")))
        await asyncio.to_thread(begun.wait)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        go_on.set()
    assert opening.cancelled()
    assert list_folders(tmp_path) == []
    gc.collect()


async def test_a_scratch_folder_is_deleted_if_its_deletion_is_cancelled(tmp_path: Path) -> None:
    """If the caller is cancelled while the deletion waits for a thread, the folder is deleted nevertheless."""
    go_on = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        opened = AsyncExitStack()
        await opened.enter_async_context(Runtime(threads=threads).open_scratch_folder(tmp_path, "w-"))
        threads.submit(go_on.wait)
        closing = asyncio.create_task(opened.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        go_on.set()
    assert closing.cancelled()
    assert list_folders(tmp_path) == []
