"""Tests of the readiness probe."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shared.observability import readiness
from shared.observability.readiness import Readiness

SECONDS = 0.05


class Store:
    """Fake dependency of the service with a readiness check that counts its calls.

    Args:
        check: function that the readiness check calls.
    """

    def __init__(self, check: Callable[[], Awaitable[object]]) -> None:
        self.calls = 0
        self._check = check

    async def __call__(self) -> None:
        """Run the readiness check."""
        self.calls += 1
        await self._check()


async def succeed_check() -> None:
    """Do nothing, as a readiness check that succeeds."""


async def fail_check() -> None:
    """Raise an unexpected exception, as a readiness check that fails."""
    raise LookupError


async def test_stores_with_failing_or_silent_checks_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result lists stores whose check fails or does not end in time."""
    monkeypatch.setattr(readiness, "READY_SECONDS", SECONDS)
    stores = {"good": Store(succeed_check), "bad": Store(fail_check), "silent": Store(asyncio.Event().wait)}
    async with asyncio.timeout(20):
        assert await Readiness(lambda: stores).list_failing_dependencies() == ["bad", "silent"]


async def test_readiness_checks_run_concurrently() -> None:
    """Readiness checks run concurrently, so that two checks that wait for each other succeed."""
    meeting = asyncio.Barrier(2)
    stores = {"one": Store(meeting.wait), "other": Store(meeting.wait)}
    async with asyncio.timeout(20):
        assert await Readiness(lambda: stores).list_failing_dependencies() == []


async def test_a_readiness_result_is_cached_for_a_short_time() -> None:
    """Within a short time, callers share one result; later callers cause new checks."""
    store = Store(fail_check)
    readiness_check = Readiness(lambda: {"store": store}, cache_seconds=3600)
    assert await asyncio.gather(*(readiness_check.list_failing_dependencies() for _ in range(5))) == [["store"]] * 5
    assert await readiness_check.list_failing_dependencies() == ["store"]
    assert store.calls == 1
    readiness_check.cache_seconds = 0
    await readiness_check.list_failing_dependencies()
    assert store.calls == 2


async def test_readiness_checks_of_the_host_are_included(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readiness checks that the host registers are included."""
    monkeypatch.setattr(readiness, "_host_probes", {})
    readiness.add_readiness_probe("engine", fail_check)
    assert await Readiness(lambda: {"store": succeed_check}).list_failing_dependencies() == ["engine"]
