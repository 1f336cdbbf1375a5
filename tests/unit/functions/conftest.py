"""Fixtures that run the function app with STORES=azure and emulators of the Azure services."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from functions.http_blueprint import get_pipeline
from shared import wiring
from shared.commands import workspace
from tests.azurite.running import find_missing_requirement
from tests.emulators.kusto.endpoints import end_process
from tests.unit.functions.azure_plant import ADMIN, SAMPLE, Instance, Plant
from tests.unit.shared.wiring.azure import Deployment, deployment


@pytest.fixture
async def azure_emulators(tmp_path: Path) -> AsyncIterator[Plant]:
    """Yield the emulators of all Azure services, with a Kusto emulator that reads from the hub's log file."""
    if find_missing_requirement():
        pytest.skip(find_missing_requirement())
    async with deployment(tmp_path / "blobs") as deployed:
        running = Plant(deployed, tmp_path)
        await running.start()
        try:
            yield running
        finally:
            await asyncio.to_thread(end_process, running.kusto.process)


@pytest.fixture
def azure_deployment(azure_emulators: Plant) -> Deployment:
    """Return the emulators of all Azure services except Kusto and Event Hubs."""
    return azure_emulators.deployment


@pytest.fixture
async def start_instance(
    azure_emulators: Plant, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[], Instance]]:
    """Yield a function that starts an instance of the app; requests go to the newest instance."""
    started: list[Instance] = []

    def create_instance() -> Instance:
        started.append(Instance(azure_emulators.services(), monkeypatch))
        return started[-1]

    yield create_instance
    for instance in started:
        await instance.services.close()
    monkeypatch.undo()
    wiring.services.cache_clear()
    get_pipeline.cache_clear()


@pytest.fixture
def apply_sample_document(azure_deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Return a function that applies the sample document and returns a member's new API key."""

    def apply_sample(member: str) -> str:
        arguments = ["apply", str(SAMPLE), "--as", ADMIN, "--issue-key", member]
        assert workspace.main(arguments, azure_deployment.services) == workspace.DONE
        return capsys.readouterr().out.strip()

    return apply_sample
