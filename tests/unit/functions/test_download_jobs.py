"""Tests of the orchestrator of downloads."""

import pytest

from functions.download_jobs import cold_download
from tests.unit.functions.orchestrations import Context, start_orchestrator


def test_a_failed_download_ends() -> None:
    """If an activity fails in its last attempt, the orchestrator marks the job as failed and ends."""
    context = Context()
    steps = start_orchestrator(cold_download, context)
    assert next(steps) == "download_next_parts a1"
    assert steps.throw(RuntimeError("the blob store does not respond")) == "download_fail a1"
    with pytest.raises(StopIteration):
        steps.send(None)
    assert not context.is_restarted


def test_a_download_continues_if_it_cannot_be_marked_as_failed() -> None:
    """If the job store is not available after a failure, the orchestrator restarts, so that the job can end."""
    context = Context()
    steps = start_orchestrator(cold_download, context)
    assert next(steps) == "download_next_parts a1"
    assert steps.throw(RuntimeError("the job store does not respond")) == "download_fail a1"
    with pytest.raises(StopIteration):
        steps.throw(RuntimeError("the job store does not respond"))
    assert context.is_restarted
