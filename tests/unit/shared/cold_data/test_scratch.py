"""Tests of the limits of scratch files and of the errors at these limits."""

import shutil
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from shared.cold_data import engine, scratch
from shared.cold_data.archive import Archive
from shared.errors import WorkspaceError
from tests.unit.shared.cold_data.archived import build_event, open_folder_store, read_ids

MEGABYTE = 1_000_000
SORTED = "SELECT hash(range) AS h, repeat(range::VARCHAR, 20) AS t FROM range(2000000) ORDER BY h"


class Disk(NamedTuple):
    """Fake disk usage of the operating system."""

    total: int
    used: int
    free: int


def simulate_full_disk(monkeypatch: pytest.MonkeyPatch, free: int, total: int = 10_000 * MEGABYTE) -> None:
    """Simulate a nearly full disk."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(total, total - free, free))


def test_scratch_files_leave_a_part_of_the_disk_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch files leave a gigabyte of the disk free, or a tenth of a small disk."""
    simulate_full_disk(monkeypatch, 3000 * MEGABYTE)
    assert scratch.count_free_bytes(tmp_path) == 2000 * MEGABYTE
    simulate_full_disk(monkeypatch, 300 * MEGABYTE, 1000 * MEGABYTE)
    assert scratch.count_free_bytes(tmp_path) == 200 * MEGABYTE


async def test_a_read_without_enough_disk_space_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that needs more disk space than available is rejected at its start."""
    store = open_folder_store(tmp_path)
    await Archive(store).store_events([build_event(1)])
    simulate_full_disk(monkeypatch, 900 * MEGABYTE)
    with pytest.raises(WorkspaceError, match="shorter range") as refusal:
        await read_ids(store)
    assert refusal.value.code == "SCRATCH_FULL"


def test_a_sort_beyond_the_scratch_space_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort that needs more scratch space than available raises SCRATCH_FULL."""
    monkeypatch.setattr(engine, "MEMORY_PER_THREAD_MB", 30)
    simulate_full_disk(monkeypatch, 1005 * MEGABYTE)
    open_engine = engine.open_engine(tmp_path)
    with pytest.raises(WorkspaceError) as refusal, scratch.translate_resource_errors(tmp_path):
        open_engine.execute(f"CREATE TEMP TABLE sorted AS {SORTED}")
    open_engine.close()
    assert refusal.value.code == "SCRATCH_FULL"


def test_running_out_of_memory_raises_download_out_of_memory(tmp_path: Path) -> None:
    """A query that runs out of memory raises DOWNLOAD_OUT_OF_MEMORY; other errors are not changed."""
    bounded = duckdb.connect(":memory:", config={"memory_limit": "20MB", "temp_directory": ""})
    with pytest.raises(WorkspaceError, match="jsonl") as refusal, scratch.translate_resource_errors(tmp_path):
        bounded.execute(f"CREATE TEMP TABLE sorted AS {SORTED}")
    with pytest.raises(FileNotFoundError), scratch.translate_resource_errors(tmp_path):
        (tmp_path / "nothing").read_bytes()
    bounded.close()
    assert refusal.value.code == "DOWNLOAD_OUT_OF_MEMORY"
