"""Durable Functions on a real host, and the engine alone."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.local.durable.hosts import DurableHost
from tests.local.durable.worlds import World


@pytest.fixture
def durable(start_host: Callable[..., Any], http: httpx.Client) -> DurableHost:
    return DurableHost(start_host, http)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "durable.sqlite")
    yield made
    await made.kill()
