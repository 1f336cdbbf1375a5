"""Background work as orchestrations: the client that the host binds to a request, and what is asked of it."""

from contextvars import ContextVar
from typing import Any

from shared.errors import Kind, WorkspaceError
from shared.observability import logs

CLIENT: ContextVar[Any] = ContextVar("durable_client")
"""The Durable Functions client of the request that the current task serves."""

_LOG = logs.logger("durable")


class DurableRunner:
    """Runs a job as the instance of an orchestrator that has the job's id.

    Args:
        orchestrator: its name; it takes the job's id.
    """

    def __init__(self, orchestrator: str) -> None:
        self._orchestrator = orchestrator

    async def start(self, job_id: str) -> None:
        """Begin a job's work.

        Raises:
            WorkspaceError: UNAVAILABLE ``DOWNLOADS_UNAVAILABLE``.
        """
        try:
            await CLIENT.get().start_new(self._orchestrator, instance_id=job_id, client_input=job_id)
        except Exception as error:
            detail = "Background work cannot be started at the moment; try again."
            raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", detail) from error

    async def stop(self, job_id: str) -> None:
        """End a job's work; its own steps see that the job has ended where this fails."""
        try:
            await CLIENT.get().terminate(job_id, "cancelled")
        except Exception:  # noqa: BLE001  the client raises bare exceptions
            _LOG.warning("an orchestration could not be ended", extra=logs.fields(job=job_id), exc_info=True)
