"""Tests of a rate limit that four real processes share."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
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
PROCESSES, BUDGET = 4, 1000
STEP_SECONDS = 0.1
"""Time between two lines that move the clocks; each process sends at most one request in this time."""


@dataclass(frozen=True)
class ProcessReport:
    """Report of one instance: times of the admitted requests, number of rejected requests, number of store calls."""

    admitted: Sequence[float]
    rejected: int
    calls: int


@pytest.fixture(params=["sqlite", "cosmos"])
async def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """Return the kind and address of a store."""
    if request.param == "sqlite":
        yield "sqlite", str(tmp_path / "limits.sqlite")
        return
    async with CosmosServer() as server, CosmosClient(server.endpoint, server.key) as client:
        await create_containers(await client.create_database(DATABASE))
        yield "cosmos", server.endpoint


async def run_instances(store_address: tuple[str, str], rate: float, seconds: float) -> list[ProcessReport]:
    """Let four instances send requests at a rate (per minute) for some seconds of a clock that this function moves."""
    command = [sys.executable, str(SCRIPT), *store_address, str(rate), str(BUDGET)]
    processes = [
        await asyncio.create_subprocess_exec(*command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdin=PIPE, stdout=PIPE)
        for _ in range(PROCESSES)
    ]
    await asyncio.gather(*(read_line(process, b"ready\n") for process in processes))
    for step in range(round(seconds / STEP_SECONDS)):
        # All processes have the same time, so a process that is slow on a busy machine does not send fewer requests.
        await asyncio.gather(*(move_clock(process, step * STEP_SECONDS) for process in processes))
    outputs = await asyncio.gather(*(process.communicate() for process in processes))
    return [ProcessReport(**json.loads(output)) for output, _ in outputs]


async def move_clock(process: Process, seconds: float) -> None:
    """Set the clock of a process, and wait until the process has sent the requests that are due."""
    assert process.stdin is not None
    process.stdin.write(f"{seconds}\n".encode())
    await read_line(process, b"done\n")


async def read_line(process: Process, line: bytes) -> None:
    """Wait for an expected line of a process."""
    assert process.stdout is not None
    assert await process.stdout.readline() == line


async def test_four_processes_use_97_percent_of_the_budget(store_address: tuple[str, str]) -> None:
    """If the load is twice the budget, no minute exceeds the budget by over 3 %, and the first uses at least 97 %."""
    reports = await run_instances(store_address, 2 * BUDGET / PROCESSES, 70)
    admitted = sorted(at for one in reports for at in one.admitted)
    assert len([at for at in admitted if at < 60]) >= 0.97 * BUDGET
    for first, at in enumerate(admitted):
        assert len([each for each in admitted[first:] if each < at + 60]) <= 1.03 * BUDGET
    for one in reports:
        assert one.rejected > 0
        assert one.calls <= 4 * 70


async def test_requests_within_the_budget_need_few_store_calls(store_address: tuple[str, str]) -> None:
    """Within the budget, an instance calls the store at most once per second."""
    seconds = 30
    reports = await run_instances(store_address, 0.8 * BUDGET / PROCESSES, seconds)
    for one in reports:
        assert one.rejected == 0
        assert len(one.admitted) > 2.5 * seconds
        assert one.calls <= 1.5 * seconds
