"""Tests of several processes that change one catalog at once, some of which crash."""

import subprocess
import sys
from pathlib import Path

import pytest

from shared.catalog.document import load_document
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import open_catalog_stores

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("apply_process.py")
ITEMS = 13
DEADLINE = 60


def start_process(folder: Path, text: str, actor: str, crash_point: str = "nowhere") -> subprocess.Popen[str]:
    """Start a process that waits for a line on standard input before it applies a document."""
    document = folder / f"{actor}.yaml"
    document.write_text(text)
    command = [sys.executable, str(SCRIPT), str(folder), str(document), actor, crash_point]
    process = subprocess.Popen(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def release_processes(*processes: subprocess.Popen[str]) -> list[int]:
    """Let the processes continue at the same time, and return their exit codes."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    try:
        return [_wait_for_end(process) for process in processes]
    finally:
        for process in processes:
            process.kill()


def _wait_for_end(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=DEADLINE)
    return process.returncode


async def test_concurrent_applies_store_one_document(tmp_path: Path) -> None:
    """If two processes apply different documents at once, one is stored, and each change is audited once."""
    texts = {actor: PLANT.replace("name: Rig,", f"name: Rig of {actor},") for actor in ("first", "second")}
    assert release_processes(*(start_process(tmp_path, text, actor) for actor, text in texts.items())) == [0, 0]
    async with open_catalog_stores(tmp_path) as opened:
        plans = [await opened.service.plan(load_document(text, "w.yaml")) for text in texts.values()]
        assert [plan.is_empty for plan in plans].count(True) == 1
        events = await opened.list_audited_changes()
        assert not await opened.store.list_pending_events()
    assert len(events) == ITEMS + 1
    assert len(set(events)) == ITEMS + 1


@pytest.mark.parametrize("die", ["before-append", "before-settle"])
async def test_events_of_crashed_process_are_appended_once(tmp_path: Path, die: str) -> None:
    """If a process crashes before or after an append, the next apply stores each missing event once."""
    assert release_processes(start_process(tmp_path, PLANT, "victim", die)) == [-9]
    async with open_catalog_stores(tmp_path) as opened:
        assert len(await opened.store.list_pending_events()) == ITEMS
        assert len(await opened.list_audited_changes()) == (0 if die == "before-append" else ITEMS)
        assert (await opened.service.apply(load_document(PLANT, "w.yaml"), "rescuer")).is_empty
        assert len(await opened.list_audited_changes()) == ITEMS
        assert not await opened.store.list_pending_events()
        assert {record["UserID"] for record in await opened.read_chain()} == {"victim"}
