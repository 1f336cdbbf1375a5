"""Durable Functions orchestration that builds audit bundles."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any, Final

import azure.durable_functions as df

from functions.download_jobs import RETRY, RETRY_DELAY, ROUNDS
from shared.observability.tracing import open_span
from shared.wiring import services

ORCHESTRATOR: Final = "audit_bundle"

blueprint = df.Blueprint()


@blueprint.function_name(ORCHESTRATOR)
@blueprint.orchestration_trigger(context_name="context")
def audit_bundle(context: df.DurableOrchestrationContext) -> Generator[Any, Any]:
    """Build an audit bundle: call the activity ``bundle_build`` until it returns True, and wait between the calls."""
    job_id = context.get_input()
    try:
        for _ in range(ROUNDS):
            built = yield context.call_activity_with_retry("bundle_build", RETRY, job_id)
            if built:
                return
            yield context.create_timer(context.current_utc_datetime + RETRY_DELAY)
    except Exception:  # noqa: BLE001  whatever the activity raised in its last attempt
        # If this fails as well, the work begins again; otherwise the job would stay unfinished until it expires.
        with suppress(Exception):
            yield context.call_activity_with_retry("bundle_fail", RETRY, job_id)
            return
    context.continue_as_new(job_id)


@blueprint.function_name("bundle_build")
@blueprint.activity_trigger(input_name="job")
async def bundle_build(job: str) -> bool:
    """Build the audit bundle of the job with this id; return True if the job has ended, also if it has failed.

    Return False if the orchestrator must call this activity again later.
    """
    with open_span("build an audit bundle"):
        return await services().audit_bundles.runner.build_bundle_unless_busy(job)


@blueprint.function_name("bundle_fail")
@blueprint.activity_trigger(input_name="job")
async def bundle_fail(job: str) -> None:
    """Mark the audit bundle job with this id as failed."""
    await services().audit_bundles.runner.fail_job(job)
