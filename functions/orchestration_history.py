"""Background job that deletes the history of ended orchestrations; Durable Functions on Azure retains it forever.

This module is separate from ``triggers``, because the sizing model reads the schedule without registering triggers.
"""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from azure.durable_functions import OrchestrationRuntimeStatus

from functions.durable_runner import CLIENT
from shared.observability import logs
from shared.wiring import services

if TYPE_CHECKING:
    from shared.background.runner import BackgroundJob

SCHEDULE: Final = "0 45 3 * * *"
"""NCRONTAB schedule of the job. The job runs once a day, because Azure reads a whole table to find old histories."""
RETENTION: Final = timedelta(days=7)
"""Time for which the history of an orchestration is retained after its start; the record of its job expires earlier."""

_FIRST_START: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""Time before the first orchestration; the client requires one, and Azure rejects the minimum of ``datetime``."""
_ENDED: Final = (
    OrchestrationRuntimeStatus.Completed,
    OrchestrationRuntimeStatus.Failed,
    OrchestrationRuntimeStatus.Terminated,
    OrchestrationRuntimeStatus.Canceled,
)
_LOG = logs.get_logger("durable")


@cache
def get_history_job() -> "BackgroundJob":
    """Return the background job that deletes the history of ended orchestrations.

    The caller of the job must set ``durable_runner.CLIENT`` to a Durable Functions client.
    """
    from shared.background.runner import BackgroundJob, Schedule  # noqa: PLC0415  slow, and requests do not need it

    return BackgroundJob("orchestration-history", Schedule(SCHEDULE), _delete_old_history)


async def _delete_old_history() -> None:
    """Delete the history of orchestrations that have ended and were started more than ``RETENTION`` ago.

    Raises:
        Exception: the Durable Functions client fails; it can have deleted a part of the history before.
    """
    started_before = services().runtime.now() - RETENTION
    result = await CLIENT.get().purge_instance_history_by(_FIRST_START, started_before, list(_ENDED))
    if result.instances_deleted:
        _LOG.info("deleted the history of orchestrations", extra=logs.fields(count=result.instances_deleted))
