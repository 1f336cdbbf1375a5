"""Event loop of a simulated process, and thread pools whose jobs run in the same thread."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Executor, Future
from contextvars import Context
from types import FrameType
from typing import Any, Final, Protocol, cast

from tests.simulation.crash_points import find_call_site
from tests.simulation.scheduler import MICROSECONDS, Scheduler

MILLISECOND: Final = 1_000


class SimulatedCrashError(BaseException):
    """Error in a running job whose process crashes; it is no Exception, so that the job does not catch it."""


class JobObserver(Protocol):
    """Interface of a process that decides the delay of each thread-pool job and when a job crashes it."""

    def survives_job_start(self, site: str) -> bool:
        """Return False if the process crashes before the job starts."""
        ...

    def survives_job_end(self, site: str) -> bool:
        """Return False if the process crashes immediately after the job."""
        ...

    def draw_job_delay(self) -> int:
        """Return a random delay in microseconds until the next job starts."""
        ...


class SimulatedLoop:
    """Event loop of a simulated process; a scheduler runs the loops of all processes.

    Args:
        scheduler: scheduler of the world.
        name: name of the process, for the trace.

    Attributes:
        ready: callbacks that run in this order.
        is_dead: True after a crash; then nothing of the loop runs any more.
        paused_until: time in microseconds until which nothing of the loop runs; 0 if it is not paused.
        tasks: every task that the loop has created.
        errors: exceptions of callbacks that no caller received.
        last_task: task that ran last; None if the last callback was of no task.
        lost_results: results of jobs after which the process crashed.
    """

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.scheduler = scheduler
        self.name = name
        self.ready: deque[asyncio.Handle] = deque()
        self.is_dead = False
        self.paused_until = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.last_task: asyncio.Task[Any] | None = None
        self.lost_results: list[object] = []
        # It has only the methods that the service needs, so it does not derive from the abstract class.
        self._loop = cast("asyncio.AbstractEventLoop", self)

    def run_next_callback(self) -> None:
        """Run the next queued callback."""
        handle = self.ready.popleft()
        if handle.cancelled():
            return
        # A callback that resumes a task is a method of this task.
        resumed = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]  # a private attribute
        self.last_task = resumed if isinstance(resumed, asyncio.Task) else None
        self.scheduler.current = self
        asyncio._set_running_loop(self._loop)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(None)
            self.scheduler.current = None

    def crash(self) -> None:
        """Crash the process: drop all queued callbacks, so that no coroutine and no ``finally`` block runs."""
        self.is_dead = True
        self.ready.clear()
        self.scheduler.remove_loop(self)

    def pause(self, duration: int) -> None:
        """Stop the process for a number of microseconds, as if its virtual machine were frozen; nothing is lost."""
        if self.is_dead or self.paused_until:
            return
        self.paused_until = self.scheduler.now + duration
        self.scheduler.remove_loop(self)
        self.scheduler.call_after(duration, self._resume)

    def _resume(self) -> None:
        self.paused_until = 0
        if self.ready:
            self.scheduler.add_ready_loop(self)

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Queue a callback."""
        handle = asyncio.Handle(callback, args, self._loop, context)
        self._queue_callback(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Queue a callback; the simulation has only one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Queue a callback that runs after a number of seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Queue a callback that runs at a time of this loop's clock."""
        handle = asyncio.TimerHandle(when, callback, args, self._loop, context)
        self.scheduler.call_after(round(when * MICROSECONDS) - self.scheduler.now, lambda: self._queue_callback(handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing, because a cancelled timer is skipped when it expires."""

    def _queue_callback(self, handle: asyncio.Handle) -> None:
        if self.is_dead or handle.cancelled():
            return
        if not self.ready and not self.paused_until:
            self.scheduler.add_ready_loop(self)
        self.ready.append(handle)

    def time(self) -> float:
        """Return the virtual seconds since the start of the world."""
        return self.scheduler.now / MICROSECONDS

    def create_future(self) -> asyncio.Future[Any]:
        """Create a future of this loop."""
        return asyncio.Future(loop=self._loop)

    def create_task[T](
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None, **kwargs: Any
    ) -> asyncio.Task[T]:
        """Start a coroutine as a task."""
        task = asyncio.Task(coro, loop=self._loop, name=name, context=context, **kwargs)
        self.tasks.append(task)
        return task

    def run_in_executor[T](self, executor: Executor | None, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Submit a job to the given pool; the service always passes a pool."""
        if executor is None:
            raise NotImplementedError("a job must name its pool, because the simulated runtime has no default pool")
        return asyncio.wrap_future(executor.submit(func, *args), loop=self._loop)

    def is_running(self) -> bool:
        """Return whether a callback of this loop is running."""
        return self.scheduler.current is self

    def is_closed(self) -> bool:
        """Return False; the loop exists as long as its process."""
        return False

    def get_debug(self) -> bool:
        """Return False, because the debug mode measures real time."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Store an exception that nothing caught, so that the simulation reports it as an error."""
        self.errors.append(context)


class _NoLock:
    """Replacement of a future's lock, because a simulated world has only one thread."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def notify_all(self) -> None:
        """Do nothing."""


_NO_LOCK: Final[Any] = _NoLock()


class _JobFuture[T](Future[T]):
    """Future of a job, without a lock, because the lock would take much of the time of a small job."""

    def __init__(self) -> None:  # the base class would create the lock
        self._condition = _NO_LOCK
        self._state = "PENDING"
        self._result = None
        self._exception = None
        self._waiters = []
        self._done_callbacks: list[Any] = []


class SimulatedPool(Executor):
    """Thread pool without threads; it runs each job in the thread of the event loop, some steps after submission.

    Args:
        loop: loop of the process.
        threads: maximum number of concurrent jobs.
        observer: decides delays and crashes.
    """

    def __init__(self, loop: SimulatedLoop, threads: int, observer: JobObserver) -> None:
        self._loop = loop
        self._free = threads
        self._observer = observer
        self._waiting: deque[tuple[Future[Any], Callable[[], Any], str]] = deque()

    def submit[**P, T](self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a job and return its future."""
        future: Future[T] = _JobFuture()
        site = find_call_site(_get_caller())
        self._waiting.append((future, lambda: work(*args, **kwargs), site))
        self._schedule_next()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002  signature of Executor
        """Run the queued jobs immediately."""
        while self._waiting:
            self._free += 1
            self._run_next()

    def _schedule_next(self) -> None:
        if self._free and self._waiting:
            self._free -= 1
            self._loop.scheduler.call_after(self._observer.draw_job_delay(), self._run_next)

    def _run_next(self) -> None:
        if self._loop.is_dead or not self._waiting:
            return
        if self._loop.paused_until:
            self._loop.scheduler.call_after(self._loop.paused_until - self._loop.scheduler.now, self._run_next)
            return
        future, work, site = self._waiting.popleft()
        scheduler = self._loop.scheduler
        if not self._observer.survives_job_start(site):
            return
        outer, scheduler.current = scheduler.current, self._loop
        self._free += 1
        result, error, is_wanted = None, None, False
        try:
            is_wanted = future.set_running_or_notify_cancel()
            if is_wanted:
                result = work()
        except SimulatedCrashError:
            return
        except Exception as raised:  # noqa: BLE001  raised to the caller that reads the future
            error = raised
        finally:
            scheduler.current = outer
        if not self._observer.survives_job_end(site):
            # Python deletes an object without references, and a temporary folder then deletes its files.
            self._loop.lost_results.append(result)
            return
        if error is not None:
            future.set_exception(error)
        elif is_wanted:
            future.set_result(result)
        self._schedule_next()


def _get_caller() -> FrameType:
    return sys._getframe(2)


def close_generators_in_their_loop() -> None:
    """Close abandoned asynchronous generators of this thread in a task of the running event loop, as asyncio does."""

    def end_generator(generator: AsyncGenerator[Any, Any]) -> None:
        loop: object = asyncio._get_running_loop()
        if isinstance(loop, SimulatedLoop) and not loop.is_dead:
            loop.create_task(generator.aclose())

    sys.set_asyncgen_hooks(finalizer=end_generator)
