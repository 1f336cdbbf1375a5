"""Adapter that runs background jobs as Durable Functions orchestrations."""

from contextvars import ContextVar
from typing import Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability import logs

CLIENT: ContextVar[Any] = ContextVar("durable_client")
"""Durable Functions client of the current request, which the SDK creates from the text that the host passes."""

_RUNNING: Final = frozenset({"Pending", "Running"})
_LOG = logs.get_logger("durable")


class DurableRunner:
    """Runner that starts one Durable Functions orchestration per job; the job's id is the instance id and the input.

    Args:
        orchestrator: name of the orchestrator function to start.
    """

    def __init__(self, orchestrator: str) -> None:
        self._orchestrator = orchestrator

    async def start(self, job_id: str) -> None:
        """Start the orchestration of a job; do nothing if it is running, for example after a simultaneous request.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOWNLOADS_UNAVAILABLE`` if the Durable Functions client fails.
        """
        try:
            await CLIENT.get().start_new(self._orchestrator, instance_id=job_id, client_input=job_id)
        except Exception as error:
            if await _is_running(job_id):
                return
            detail = "The background job could not be started. Retry the request."
            raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", detail) from error

    async def stop(self, job_id: str) -> None:
        """Terminate the orchestration of a job.

        A failure of the client is only logged: the orchestration also ends when the job's record has a final status.
        """
        try:
            await CLIENT.get().terminate(job_id, "cancelled")
        except Exception:  # noqa: BLE001  the client raises bare exceptions
            _LOG.warning("an orchestration could not be terminated", extra=logs.fields(job=job_id), exc_info=True)


async def _is_running(job_id: str) -> bool:
    """Return whether the orchestration of a job is running; False if the Durable Functions client fails."""
    try:
        status = (await CLIENT.get().get_status(job_id)).runtime_status
    except Exception:  # noqa: BLE001  the client raises bare exceptions
        return False
    return status is not None and status.name in _RUNNING
