"""Tests that each acknowledged event is stored once if Cosmos DB fails at random and writers are killed."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from azure.cosmos.aio import CosmosClient

from emulators.cosmos.service import DEFAULT_KEY
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_containers import create_containers
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE
from tests.unit.shared.backends.storms import (
    READ_SECONDS,
    ROOT,
    SEGMENT_BYTES,
    check_records,
    read_stored_records,
    run_crash_test,
)

CHAOS, READ_CHAOS = "0.3", "0.1"


@contextmanager
def run_failing_account(seed: int) -> Iterator[str]:
    """Run an emulator, in another process, that fails and replies late at random; return its address."""
    command = [sys.executable, "-m", "emulators.cosmos", "--physical-partitions", "2", "--seed", str(seed % 10**6)]
    command += ["--chaos", CHAOS, "--read-chaos", READ_CHAOS, "--delay-ms", str(READ_SECONDS * 1_000 + 300)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as lines:
        try:
            yield lines.readline().removeprefix("ready ").strip()
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.parametrize("seconds", [6.0, pytest.param(60.0, marks=pytest.mark.soak)])
async def test_faults_and_kills_lose_no_event(seconds: float) -> None:
    """With faults and kills, 64 writers in 4 processes store each event once, without gap or fork."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201  shown when it fails
    with run_failing_account(seed) as address:
        async with CosmosClient(address, DEFAULT_KEY) as client:
            await create_containers(await client.create_database(DATABASE))
        answers = run_crash_test(("cosmos", address), seconds, random.Random(seed))
        store = CosmosChainStore(CosmosAccount(address, DATABASE, key=DEFAULT_KEY), segment_bytes=SEGMENT_BYTES)
        records = await read_stored_records(store)
        await store.close()
    check_records(records, answers)
    print(len(answers), "answers")  # noqa: T201  shown when it fails
