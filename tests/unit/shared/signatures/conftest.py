"""Fixtures of the tests of signatures."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.shared.signatures.environment import Environment, open_environment


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[Environment]:
    """Provide the signature services with empty stores and a clock that the test sets."""
    async with open_environment(tmp_path) as opened:
        yield opened
