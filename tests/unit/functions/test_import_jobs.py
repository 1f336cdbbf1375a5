"""Tests of the orchestrator of imports."""

import pytest

from functions.import_jobs import history_import
from tests.unit.functions.orchestrations import Context, start_orchestrator


def test_an_import_ends_after_its_last_step() -> None:
    """The orchestrator calls the activity until the job has ended, and waits while other jobs run."""
    context = Context()
    steps = start_orchestrator(history_import, context)
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
    steps = start_orchestrator(history_import, context)
    assert next(steps) == "import_steps a1"
    assert steps.throw(RuntimeError("the query table is not available")) == "import_fail a1"
    with pytest.raises(StopIteration):
        steps.send(None)
    assert context.is_restarted


def test_an_import_continues_if_it_cannot_be_marked_as_failed() -> None:
    """If the job store is not available after a failure, the orchestrator restarts, so that the import continues."""
    context = Context()
    steps = start_orchestrator(history_import, context)
    assert next(steps) == "import_steps a1"
    assert steps.throw(RuntimeError("the job store does not respond")) == "import_fail a1"
    with pytest.raises(StopIteration):
        steps.throw(RuntimeError("the job store does not respond"))
    assert context.is_restarted
