"""Stores that are closed after each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.shared.downloads.plant import Plants


@pytest.fixture
async def plants(tmp_path: Path) -> AsyncIterator[Plants]:
    """Return what makes plants."""
    made = Plants(tmp_path)
    yield made
    await made.close()
