"""Tests of the background job that deletes the history of ended orchestrations."""

import json
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from azure.durable_functions import DurableOrchestrationClient

from functions import orchestration_history, triggers
from functions.durable_runner import CLIENT
from functions.orchestration_history import get_history_job
from shared.background.runner import BackgroundJob

NOW = datetime(2026, 1, 12, 3, 45, tzinfo=UTC)
BINDING = {
    "taskHubName": "hub",
    "creationUrls": {"createNewInstancePostUri": "http://h"},
    "managementUrls": {"id": "INSTANCEID", "statusQueryGetUri": "http://h"},
    "rpcBaseUrl": "http://host/durabletask/",
}


class HistoryService:
    """Fake of the host's management API: records the URLs of purges and returns the reply that the test has set."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.reply: Sequence[Any] = [404, None]

    async def purge(self, url: str) -> Sequence[Any]:
        """Record the URL of a purge and return the reply."""
        self.urls.append(url)
        return self.reply


@pytest.fixture
def history_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[HistoryService]:
    """Set a genuine client of a fake management API as the client of the current call, at the time ``NOW``."""
    service = HistoryService()
    client = DurableOrchestrationClient(json.dumps(BINDING))
    monkeypatch.setattr(client, "_delete_async_request", service.purge)
    runtime = SimpleNamespace(now=lambda: NOW)
    monkeypatch.setattr(orchestration_history, "services", lambda: SimpleNamespace(runtime=runtime))
    token = CLIENT.set(client)
    yield service
    CLIENT.reset(token)


async def test_only_old_ended_orchestrations_are_deleted(
    history_service: HistoryService, caplog: pytest.LogCaptureFixture
) -> None:
    """The job deletes the history of ended orchestrations that were started more than seven days ago."""
    caplog.set_level(logging.INFO, "workspace")
    await get_history_job().run()
    history_service.reply = [200, {"instancesDeleted": 3}]
    await get_history_job().run()
    assert [record.message for record in caplog.records] == ["deleted the history of orchestrations"]
    [url, _] = history_service.urls
    assert url.startswith("http://host/durabletask/instances/?")
    assert dict(parse_qsl(urlsplit(url).query)) == {
        "createdTimeFrom": "2020-01-01T00:00:00.000000Z",
        "createdTimeTo": "2026-01-05T03:45:00.000000Z",
        "runtimeStatus": "Completed,Failed,Terminated,Canceled",
    }


async def test_a_failed_deletion_fails_the_job(history_service: HistoryService) -> None:
    """If the host rejects the deletion, the job fails, so that the metric of failed jobs counts it."""
    history_service.reply = [500, None]
    with pytest.raises(Exception, match="unexpected status code 500"):
        await get_history_job().run()


async def test_the_timer_passes_its_client_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function of the timer runs the job with the Durable Functions client of its call."""
    passed: list[Any] = []

    async def run_due_jobs(further_jobs: Sequence[BackgroundJob]) -> None:
        passed.extend((CLIENT.get(), *further_jobs))

    background = SimpleNamespace(runner=SimpleNamespace(run_due_jobs=run_due_jobs))
    monkeypatch.setattr(triggers, "services", lambda: SimpleNamespace(background=background))
    [function] = [
        builder._function
        for builder in triggers.blueprint._function_builders
        if builder._function.get_function_name() == "background"
    ]
    assert "durableClient" in {binding.type for binding in function.get_bindings()}
    await function.get_user_function()(timer=None, client=json.dumps(BINDING))
    [client, job] = passed
    assert (type(client), job) == (DurableOrchestrationClient, get_history_job())
