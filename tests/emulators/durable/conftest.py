"""Fixtures: Durable Functions on a host, and the Durable Task engine without a host."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.emulators.durable.hosts import DurableHost
from tests.emulators.durable.worlds import SdkFunctions, World
from tests.unit.local.conftest import http, start_host

__all__ = ["http", "start_host"]


@pytest.fixture
def durable(start_host: Callable[..., Any], http: httpx.Client) -> DurableHost:
    return DurableHost(start_host, http)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "durable.sqlite")
    yield made
    await made.kill()


@pytest.fixture
def functions(world: World) -> SdkFunctions:
    functions = world.functions

    @functions.activity
    def double(value: int) -> int:
        return value * 2

    @functions.activity
    def refuse(value: Any) -> None:
        raise ValueError(f"no {value}")

    return functions
