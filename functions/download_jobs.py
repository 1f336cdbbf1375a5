"""Durable Functions orchestration of downloads, which convert the telemetry archive to files.

The orchestrator has no state: the job's record lists the parts of the download and their progress. The orchestrator
requests the next parts, converts them, and repeats. Its history therefore stays short for any date range.
"""

import typing
from collections.abc import Generator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import azure.durable_functions as df

from shared.observability.metrics import count
from shared.observability.tracing import open_span
from shared.wiring import services

ORCHESTRATOR: Final = "cold_download"
ROUNDS: Final = 20
"""Number of rounds after which an orchestration restarts with an empty history."""
RETRY_DELAY: Final = timedelta(seconds=2)
"""Time for which a job waits before its next attempt while another job of the same principal runs."""
RETRY: Final = df.RetryOptions(first_retry_interval_in_milliseconds=5_000, max_number_of_attempts=6)

blueprint = df.Blueprint()


@blueprint.function_name(ORCHESTRATOR)
@blueprint.orchestration_trigger(context_name="context")
def cold_download(context: df.DurableOrchestrationContext) -> Generator[Any, Any]:
    """Convert all parts of a download to files, and mark the download job as completed. This is the orchestrator."""
    job_id = context.get_input()
    try:
        for _ in range(ROUNDS):
            numbers = yield context.call_activity_with_retry("download_next_parts", RETRY, job_id)
            if numbers is None:
                yield context.create_timer(context.current_utc_datetime + RETRY_DELAY)
                continue
            if not numbers:
                yield context.call_activity_with_retry("download_finish", RETRY, job_id)
                return
            context.set_custom_status({"parts": numbers})
            steps = [{"job": job_id, "part": number} for number in numbers]
            done = yield context.task_all(
                [context.call_activity_with_retry("download_part", RETRY, step) for step in steps]
            )
            # Compared with False, because histories of earlier versions contain None for success.
            if all(each is False for each in done):
                yield context.create_timer(context.current_utc_datetime + RETRY_DELAY)
    except Exception:  # noqa: BLE001  whatever a step raised in its last attempt
        # If this fails as well, the work begins again; otherwise the job would stay unfinished until it expires.
        with suppress(Exception):
            yield context.call_activity_with_retry("download_fail", RETRY, job_id)
            return
    context.continue_as_new(job_id)


@blueprint.function_name("download_next_parts")
@blueprint.activity_trigger(input_name="job")
async def download_next_parts(job: str) -> list[int] | None:
    """Return the numbers of the parts that the orchestrator must convert next for the download job with this id.

    The list is empty if the job has ended. The result is None if the orchestrator must wait and call this activity
    again.
    """
    numbers = await services().downloads.runner.plan_next_part_numbers_unless_busy(job)
    return None if numbers is None else list(numbers)


@blueprint.function_name("download_part")
@blueprint.activity_trigger(input_name="step")
async def download_part(step: typing.Dict[str, typing.Any]) -> bool:  # noqa: UP006  the worker accepts only this form
    """Convert one part of a download to a file and return True.

    Return False if the orchestrator must retry the part later.

    Args:
        step: id of the download job (``job``) and number of the part (``part``).
    """
    with open_span("convert a part of a download"):
        converted = await services().downloads.runner.convert_part_unless_busy(step["job"], step["part"])
    if converted:
        count("workspace.downloads.parts")
    return converted


@blueprint.function_name("download_finish")
@blueprint.activity_trigger(input_name="job")
async def download_finish(job: str) -> None:
    """Mark the download job with this id as completed."""
    await services().downloads.runner.complete_job(job)


@blueprint.function_name("download_fail")
@blueprint.activity_trigger(input_name="job")
async def download_fail(job: str) -> None:
    """Mark the download job with this id as failed."""
    await services().downloads.runner.fail_job(job)
