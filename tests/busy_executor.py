"""Executor whose threads are always busy, so that a test knows which work has started and has not ended."""

from concurrent.futures import Executor, Future
from typing import Any


class BusyExecutor(Executor):
    """Executor that records jobs and completes none of them.

    Attributes:
        jobs: the futures of all submitted jobs; a test can complete them.
    """

    def __init__(self) -> None:
        self.jobs: list[Future[Any]] = []

    def submit(self, _work: Any, /, *_args: Any, **_kwargs: Any) -> Future[Any]:
        """Record a job and return its future."""
        self.jobs.append(Future())
        return self.jobs[-1]
