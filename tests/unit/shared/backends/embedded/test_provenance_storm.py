"""Tests that killed and restarted writers store each acknowledged event once."""

import random
from pathlib import Path

import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from tests.unit.shared.backends.storms import check_records, read_stored_records, run_crash_test


@pytest.mark.parametrize("seconds", [4.0, pytest.param(60.0, marks=pytest.mark.soak)])
async def test_kills_of_writers_lose_no_event(tmp_path: Path, seconds: float) -> None:
    """If 64 writers in 4 processes are killed and restarted, each acknowledged event is stored once and in order."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201  shown when it fails
    file = tmp_path / "provenance.sqlite"
    answers = run_crash_test(("sqlite", str(file)), seconds, random.Random(seed))
    store = SqliteChainStore(file)
    records = await read_stored_records(store)
    await store.close()
    check_records(records, answers)
