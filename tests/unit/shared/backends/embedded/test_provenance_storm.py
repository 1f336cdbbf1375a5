"""Writers in processes that are killed at random and come back: the chain keeps every answer, once."""

import random
from pathlib import Path

import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from tests.unit.shared.backends.storms import check, stored, storm


@pytest.mark.parametrize("seconds", [4.0, pytest.param(60.0, marks=pytest.mark.soak)])
async def test_no_kill_loses_doubles_or_forks(tmp_path: Path, seconds: float) -> None:
    """64 writers in 4 processes that are killed and come back: no lost answer, no duplicate, no gap, no fork."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201  shown when it fails
    file = tmp_path / "provenance.sqlite"
    answers = storm(("sqlite", str(file)), seconds, random.Random(seed))
    store = SqliteChainStore(file)
    records = await stored(store)
    await store.close()
    check(records, answers)
