"""Fixtures for the tests of the audit log."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.shared.provenance.chains import BATCH, PLATFORM, Ledger, open_ledger


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide an audit log with a chain of seven records and a second chain of three."""
    async with open_ledger(tmp_path) as opened:
        await opened.fill(PLATFORM, 7)
        await opened.fill(BATCH, 3)
        yield opened
