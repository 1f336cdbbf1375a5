"""Tests of the orchestrator of imports."""

from collections.abc import Generator
from datetime import datetime
from typing import Any

import pytest

from functions.download_jobs import RETRY
from functions.import_jobs import history_import
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


def start_orchestrator(context: Context) -> Generator[Any, Any]:
    """Call the orchestrator function with a context, and return its generator."""
    function: Any = history_import
    steps: Generator[Any, Any] = function._function.get_user_function().orchestrator_function(context)
    return steps


def test_an_import_ends_after_its_last_step() -> None:
    """The orchestrator calls the activity until the job has ended, and waits while other jobs run."""
    context = Context()
    steps = start_orchestrator(context)
    assert next(steps) == "import_steps a1"
    assert steps.send("waiting") == "timer 0:00:02"
    assert steps.send(None) == "import_steps a1"
    assert steps.send("working") == "import_steps a1"
    with pytest.raises(StopIteration):
        steps.send("ended")
    assert not context.is_restarted


def test_a_failed_import_continues_until_its_open_step_is_complete() -> None:
    """After a failure the orchestrator restarts, so that an open step is completed."""
    context = Context()
    steps = start_orchestrator(context)
    assert next(steps) == "import_steps a1"
    assert steps.throw(RuntimeError("the query table is not available")) == "import_fail a1"
    with pytest.raises(StopIteration):
        steps.send(None)
    assert context.is_restarted


def test_an_import_continues_if_it_cannot_be_marked_as_failed() -> None:
    """If the job store is not available after a failure, the orchestrator restarts, so that the import continues."""
    context = Context()
    steps = start_orchestrator(context)
    assert next(steps) == "import_steps a1"
    assert steps.throw(RuntimeError("the job store does not respond")) == "import_fail a1"
    with pytest.raises(StopIteration):
        steps.throw(RuntimeError("the job store does not respond"))
    assert context.is_restarted
