"""Tests of the orchestrator of audit bundles."""

import pytest

from functions.bundle_jobs import audit_bundle
from tests.unit.functions.orchestrations import Context, start_orchestrator


def test_a_failed_audit_bundle_ends() -> None:
    """If an activity fails in its last attempt, the orchestrator marks the job as failed and ends."""
    context = Context()
    steps = start_orchestrator(audit_bundle, context)
    assert next(steps) == "bundle_build a1"
    assert steps.throw(RuntimeError("the blob store does not respond")) == "bundle_fail a1"
    with pytest.raises(StopIteration):
        steps.send(None)
    assert not context.is_restarted


def test_an_audit_bundle_continues_if_it_cannot_be_marked_as_failed() -> None:
    """If the job store is not available after a failure, the orchestrator restarts, so that the job can end."""
    context = Context()
    steps = start_orchestrator(audit_bundle, context)
    assert next(steps) == "bundle_build a1"
    assert steps.throw(RuntimeError("the job store does not respond")) == "bundle_fail a1"
    with pytest.raises(StopIteration):
        steps.throw(RuntimeError("the job store does not respond"))
    assert context.is_restarted
