"""Tests of the time limit of verification."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Tip
from shared.provenance.verifier import ChainVerifier
from tests.unit.shared.provenance.chains import BATCH, Ledger, get_workspace_id
from tests.virtual_time import VirtualTime


class SilentStore(SqliteChainStore):
    """Fake chain store that never replies."""

    async def read_tip(self, chain: ChainKey) -> Tip:
        """Wait forever."""
        await asyncio.Event().wait()
        return await super().read_tip(chain)


async def test_a_verification_beyond_the_time_limit_has_no_verdict(tmp_path: Path) -> None:
    """If verification exceeds its time limit, it raises TIMEOUT with advice, and returns no verdict."""
    store = SilentStore(tmp_path / "provenance.sqlite")
    with pytest.raises(WorkspaceError) as caught:
        await ChainVerifier(store, get_workspace_id, seconds=0.05).verify(BATCH)
    await store.close()
    assert (caught.value.kind, caught.value.code) == (Kind.TIMEOUT, "VERIFY_TIMEOUT")
    assert "offline" in caught.value.detail


async def test_a_verification_ends_after_200_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, a verification ends after 200 seconds, because Azure Functions ends each request after 230."""
    store, time = SilentStore(tmp_path / "provenance.sqlite"), VirtualTime()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.seconds)
    verification = asyncio.create_task(ChainVerifier(store, get_workspace_id).verify(BATCH))
    for seconds, has_ended in ((0, False), (199, False), (1, True)):
        time.advance(seconds)
        for _ in range(10):
            await asyncio.sleep(0)
        assert verification.done() is has_ended
    with pytest.raises(WorkspaceError, match="within 200 s"):
        await verification
    await store.close()


async def test_the_result_is_stored_before_subtree_roots_are_repaired(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the time limit ends the repair of subtree roots, the result of the verification is stored and returned."""
    overview = SqliteChainOverview(ledger.folder / "provenance.sqlite")
    await ledger.checkpoints.create_if_grown(BATCH)
    stored: list[Any] = []

    async def end_at_time_limit(chain: ChainKey, _size: int, _root: bytes) -> bool:
        stored.append(await overview.find_verdict(chain))
        raise TimeoutError

    monkeypatch.setattr(ledger.checkpoints.trees, "try_repair_roots", end_at_time_limit)
    verifier = ChainVerifier(ledger.store, get_workspace_id, ledger.checkpoints, overview)
    assert (await verifier.verify(BATCH)).chain_valid
    [verdict] = stored
    assert verdict.is_valid
    await overview.close()
