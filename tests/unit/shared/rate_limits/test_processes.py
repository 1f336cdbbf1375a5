"""One budget, four real processes."""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import CosmosServer
from shared.backends.azure.cosmos_containers import create_containers
from tests.adapters.cosmos import DATABASE

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("limited_process.py")
PROCESSES, BUDGET, SPEED = 4, 1000, 8.0


@dataclass(frozen=True)
class Told:
    """What an instance did: when it let requests in, on the common clock, and how often it asked the store."""

    admitted: Sequence[float]
    refused: int
    calls: int


@pytest.fixture(params=["sqlite", "cosmos"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """Return kind and address of a store."""
    if request.param == "sqlite":
        yield "sqlite", str(tmp_path / "limits.sqlite")
        return
    async with CosmosServer() as server, CosmosClient(server.endpoint, server.key) as client:
        await create_containers(await client.create_database(DATABASE))
        yield "cosmos", server.endpoint


async def run(place: tuple[str, str], rate: float, seconds: float) -> list[Told]:
    """Let four instances be asked at a rate, each, for so many seconds of their clock."""
    command = [sys.executable, str(SCRIPT), *place, *map(str, (SPEED, rate, BUDGET, seconds))]
    processes = [
        await asyncio.create_subprocess_exec(*command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdin=PIPE, stdout=PIPE)
        for _ in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    start = f"{time.time() + 0.2}\n".encode()
    outputs = await asyncio.gather(*(process.communicate(start) for process in processes))
    return [Told(**json.loads(output)) for output, _ in outputs]


async def test_four_processes_keep_one_budget_within_three_percent(place: tuple[str, str]) -> None:
    """Asked for twice the budget, four processes let in what it holds: no minute more, the first hardly less."""
    told = await run(place, 2 * BUDGET / PROCESSES, 70)
    admitted = sorted(at for one in told for at in one.admitted)
    assert len([at for at in admitted if at < 60]) >= 0.97 * BUDGET
    for first, at in enumerate(admitted):
        assert len([each for each in admitted[first:] if each < at + 60]) <= 1.03 * BUDGET
    for one in told:
        assert one.refused > 0
        assert one.calls <= 4 * 70


async def test_the_steady_path_asks_no_store(place: tuple[str, str]) -> None:
    """Within the budget an instance asks the store once in a second at most, however many requests it lets in."""
    seconds = 30
    told = await run(place, 0.8 * BUDGET / PROCESSES, seconds)
    for one in told:
        assert one.refused == 0
        assert len(one.admitted) > 2.5 * seconds
        assert one.calls <= 1.5 * seconds
