"""Fixtures of the download tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.shared.downloads.environment import EnvironmentFactory


@pytest.fixture
async def environment_factory(tmp_path: Path) -> AsyncIterator[EnvironmentFactory]:
    """Yield a factory of download environments; close them after the test."""
    made = EnvironmentFactory(tmp_path)
    yield made
    await made.close()
