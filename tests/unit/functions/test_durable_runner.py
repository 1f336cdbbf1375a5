"""Tests of the start and the end of orchestrations."""

from collections.abc import Iterator
from typing import Any

import pytest
from azure.durable_functions import OrchestrationRuntimeStatus
from azure.durable_functions.models.DurableOrchestrationStatus import DurableOrchestrationStatus

from functions.durable_runner import CLIENT, DurableRunner
from shared.errors import WorkspaceError


class Client:
    """Fake Durable Functions client that records calls, or raises the error that the test has set."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.is_failing = False
        self.status: OrchestrationRuntimeStatus | None = None

    async def start_new(self, name: str, *, instance_id: str, client_input: str) -> None:
        """Record the start of an orchestration, or raise the error that the test has set."""
        self._raise_error()
        self.calls.append((name, instance_id, client_input))

    async def terminate(self, instance_id: str, reason: str) -> None:
        """Record the termination of an orchestration, or raise the error that the test has set."""
        self._raise_error()
        self.calls.append((instance_id, reason))

    async def get_status(self, instance_id: str) -> DurableOrchestrationStatus:
        """Return the status that the test has set, or raise the error of a client that does not respond."""
        if self.status is None:
            self._raise_error()
        return DurableOrchestrationStatus(instanceId=instance_id, runtimeStatus=self.status and self.status.name)

    def _raise_error(self) -> None:
        if self.is_failing:
            raise Exception("the Durable Functions host does not respond")  # noqa: TRY002  as the SDK does


@pytest.fixture
def durable_client() -> Iterator[Client]:
    """Set a fake Durable Functions client as the client of the current request, and yield it."""
    made = Client()
    token = CLIENT.set(made)
    yield made
    CLIENT.reset(token)


async def test_the_orchestration_has_the_id_of_the_job(durable_client: Client) -> None:
    """An orchestration has the id of its job, so that starting a job twice starts one orchestration."""
    runner = DurableRunner("cold_download")
    await runner.start("j1")
    await runner.stop("j1")
    assert durable_client.calls == [("cold_download", "j1", "j1"), ("j1", "cancelled")]


@pytest.mark.parametrize("status", [OrchestrationRuntimeStatus.Pending, OrchestrationRuntimeStatus.Running])
async def test_a_start_of_running_work_succeeds(durable_client: Client, status: OrchestrationRuntimeStatus) -> None:
    """If a simultaneous request has started the orchestration, its second start is no failure."""
    durable_client.is_failing, durable_client.status = True, status
    await DurableRunner("x").start("j1")
    durable_client.status = OrchestrationRuntimeStatus.Completed
    with pytest.raises(WorkspaceError):
        await DurableRunner("x").start("j1")


async def test_a_failed_start_raises_an_error_but_not_a_failed_stop(durable_client: Client) -> None:
    """A failed start of an orchestration raises an error; a failed stop does not, because the job ends anyway."""
    durable_client.is_failing = True
    with pytest.raises(WorkspaceError) as raised:
        await DurableRunner("x").start("j1")
    assert raised.value.code == "DOWNLOADS_UNAVAILABLE"
    await DurableRunner("x").stop("j1")
