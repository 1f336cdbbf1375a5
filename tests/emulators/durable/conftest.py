"""Fixtures: Durable Functions on a host, and the Durable Task engine without a host."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.emulators.durable.engine_harness import EngineHarness, SdkFunctions
from tests.emulators.durable.hosts import DurableHost
from tests.unit.local.conftest import http, start_host

__all__ = ["http", "start_host"]


@pytest.fixture
def durable(start_host: Callable[..., Any], http: httpx.Client) -> DurableHost:
    return DurableHost(start_host, http)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[EngineHarness]:
    harness = EngineHarness(tmp_path / "durable.sqlite")
    yield harness
    await harness.kill_engine()


@pytest.fixture
def functions(harness: EngineHarness) -> SdkFunctions:
    functions = harness.functions

    @functions.register_activity
    def double(value: int) -> int:
        return value * 2

    @functions.register_activity
    def refuse(value: Any) -> None:
        raise ValueError(f"no {value}")

    return functions
