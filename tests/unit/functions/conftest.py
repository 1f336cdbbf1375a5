"""An Azure deployment of test servers for the tests of the app."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from functions.http_blueprint import get_pipeline
from shared import wiring
from shared.commands import workspace
from tests.azurite.running import missing
from tests.emulators.kusto.endpoints import end
from tests.unit.functions.azure_plant import ADMIN, SAMPLE, Instance, Plant
from tests.unit.shared.wiring.azure import Deployment, deployment


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    """The test servers, and the embedded Kusto fed from the hub's log."""
    if missing():
        pytest.skip(missing())
    async with deployment(tmp_path / "blobs") as deployed:
        running = Plant(deployed, tmp_path)
        await running.start()
        try:
            yield running
        finally:
            await asyncio.to_thread(end, running.kusto.process)


@pytest.fixture
def deployed(plant: Plant) -> Deployment:
    """The test servers."""
    return plant.deployed


@pytest.fixture
async def instances(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[], Instance]]:
    """Starts an instance; the one started last answers. All are closed in the end."""
    started: list[Instance] = []

    def another() -> Instance:
        started.append(Instance(plant.services(), monkeypatch))
        return started[-1]

    yield another
    for instance in started:
        await instance.services.close()
    monkeypatch.undo()
    wiring.services.cache_clear()
    get_pipeline.cache_clear()


@pytest.fixture
def apply(deployed: Deployment, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Applies the sample from the command line, and gives the key that was issued for a member."""

    def applied(member: str) -> str:
        arguments = ["apply", str(SAMPLE), "--as", ADMIN, "--issue-key", member]
        assert workspace.main(arguments, deployed.services) == workspace.DONE
        return capsys.readouterr().out.strip()

    return applied
