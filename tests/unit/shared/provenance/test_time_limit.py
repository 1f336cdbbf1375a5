"""Tests of the time limit of verification."""

import asyncio
from pathlib import Path

import pytest

from shared.backends.embedded.provenance import SqliteChainStore
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import ChainKey, Tip
from shared.provenance.verifier import ChainVerifier
from tests.unit.shared.provenance.chains import BATCH, get_workspace_id


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
