"""Fake orchestration context, and a function that starts an orchestrator with it."""

from collections.abc import Generator
from datetime import datetime
from typing import Any

from functions.download_jobs import RETRY
from tests.virtual_time import START


class Context:
    """Fake orchestration context whose tasks are texts, and which records a restart.

    Attributes:
        is_restarted: True after the orchestration has restarted with an empty history.
    """

    current_utc_datetime = START

    def __init__(self) -> None:
        self.is_restarted = False

    def get_input(self) -> str:
        """Return the id of the job."""
        return "a1"

    def call_activity_with_retry(self, name: str, retry: object, data: str) -> str:
        """Return the name of the activity with its input."""
        assert retry is RETRY
        return f"{name} {data}"

    def create_timer(self, until: datetime) -> str:
        """Return a text that names the timer."""
        return f"timer {until - START}"

    def continue_as_new(self, data: str) -> None:
        """Record a restart."""
        assert data == "a1"
        self.is_restarted = True


def start_orchestrator(orchestrator: Any, context: Context) -> Generator[Any, Any]:
    """Call an orchestrator function with a context, and return its generator."""
    steps: Generator[Any, Any] = orchestrator._function.get_user_function().orchestrator_function(context)
    return steps
