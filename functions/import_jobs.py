"""Durable Functions orchestration that imports historical telemetry from an uploaded file.

The orchestrator has no state: the job's record contains the position in the file. An import therefore continues after
a restart with the first step that is not stored completely.
"""

from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import azure.durable_functions as df

from functions.download_jobs import RETRY, RETRY_DELAY, ROUNDS
from shared.interpreter import load_modules
from shared.observability.tracing import open_span
from shared.wiring import services

if TYPE_CHECKING:
    from shared.imports.work import ImportRunner

ORCHESTRATOR: Final = "history_import"
_MODULES: Final = ("shared.imports.work", "shared.imports.archive_writer", "shared.backends.azure.kusto")

blueprint = df.Blueprint()


@blueprint.function_name(ORCHESTRATOR)
@blueprint.orchestration_trigger(context_name="context")
def history_import(context: df.DurableOrchestrationContext) -> Generator[Any, Any]:
    """Import the file of a job: call the activity ``import_steps`` until the job has ended.

    Wait before the next call if other jobs must finish first. After ``ROUNDS`` calls, start the orchestration again
    with an empty history. If the activity fails in all its attempts, mark the job as failed and start the orchestration
    again: ``import_steps`` then only completes the step that the failure has interrupted.
    """
    job_id = context.get_input()
    try:
        for _ in range(ROUNDS):
            progress = yield context.call_activity_with_retry("import_steps", RETRY, job_id)
            if progress == "ended":
                return
            if progress == "waiting":
                yield context.create_timer(context.current_utc_datetime + RETRY_DELAY)
    except Exception:  # noqa: BLE001  whatever the activity raised in its last attempt
        # If this fails as well, the import continues; otherwise the activity only completes a partly stored step.
        with suppress(Exception):
            yield context.call_activity_with_retry("import_fail", RETRY, job_id)
    context.continue_as_new(job_id)


@blueprint.function_name("import_steps")
@blueprint.activity_trigger(input_name="job")
async def import_steps(job: str) -> str:
    """Import the next rows of the file of the import job with this id.

    Return ``ended``, ``working``, or ``waiting`` (other jobs must finish first).
    """
    with open_span("import history"):
        return str(await (await _load_import_runner()).run_steps(job))


@blueprint.function_name("import_fail")
@blueprint.activity_trigger(input_name="job")
async def import_fail(job: str) -> None:
    """Mark the import job with this id as failed."""
    await (await _load_import_runner()).fail_job(job)


async def _load_import_runner() -> "ImportRunner":
    """Return the service that executes import steps; a worker thread imports its modules, which use pyarrow."""
    await load_modules(services().runtime, *_MODULES)
    return services().imports.runner
