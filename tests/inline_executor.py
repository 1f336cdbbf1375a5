"""Executor that runs each function at once in the calling thread, so that the order of calls is known."""

from collections.abc import Callable
from concurrent.futures import Executor, Future


class InlineExecutor(Executor):
    """Executor that calls each function at once, in the thread of the caller."""

    def submit[**P, T](self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function and return a completed future with its result."""
        future: Future[T] = Future()
        try:
            future.set_result(work(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  raised to the caller that reads the future
            future.set_exception(error)
        return future
