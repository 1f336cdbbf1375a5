"""Tests of the cache of a stored value that has a version."""

import asyncio

import pytest

from shared.versioned_cache import VersionedCache
from tests.virtual_time import VirtualTime


class Store:
    """Fake store of one value that counts its reads, waits while the test holds it, or raises an error."""

    def __init__(self) -> None:
        self.version = 1
        self.is_down = False
        self.loads = 0
        self.reads = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def read_version(self) -> int:
        """Return the version at the beginning of the call."""
        version = self.version
        await self._respond()
        return version

    async def load(self) -> tuple[int, str]:
        """Return the version and the value."""
        self.loads += 1
        await self._respond()
        return self.version, f"value {self.version}"

    async def _respond(self) -> None:
        self.reads += 1
        await self.gate.wait()
        if self.is_down:
            raise OSError("down")


def build_cache(store: Store, time: VirtualTime) -> VersionedCache[str]:
    """Return a cache that reads the version every 10 seconds, and tolerates a failing store for 60 seconds."""
    return VersionedCache(store.read_version, store.load, max_age=10, max_stale=60, runtime=time.runtime)


async def test_a_change_is_seen_after_the_maximum_age() -> None:
    """A recent value is returned without a read; for an older one, the version is read, and a new value loaded."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    assert await cache.load_current_value() == "value 1"
    store.version = 2
    time.advance(9)
    assert await cache.load_current_value() == "value 1"
    time.advance(2)
    assert await cache.load_current_value() == "value 2"
    time.advance(11)
    assert await cache.load_current_value() == "value 2"
    assert store.loads == 2


async def test_an_invalidated_value_is_read_again() -> None:
    """After an invalidation, the next call reads the version, even if the cached value is recent."""
    store = Store()
    cache = build_cache(store, VirtualTime())
    await cache.load_current_value()
    store.version = 2
    cache.invalidate()
    assert await cache.load_current_value() == "value 2"


async def test_a_failing_store_is_tolerated_for_a_time() -> None:
    """While the store fails, the cached value is returned until it is too old; then the error is raised."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    store.is_down = True
    time.advance(59)
    assert await cache.load_current_value() == "value 1"
    time.advance(11)
    with pytest.raises(OSError, match="down"):
        await cache.load_current_value()


async def test_a_value_is_never_older_than_the_limit_while_the_store_fails() -> None:
    """A failed read shortly before the limit does not lengthen the time for which the cached value is used."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    store.is_down = True
    time.advance(58)
    assert await cache.load_current_value() == "value 1"
    time.advance(3)
    with pytest.raises(OSError, match="down"):
        await cache.load_current_value()


async def test_a_stored_value_is_read_although_the_cached_one_is_recent() -> None:
    """A caller that needs the stored value gets it, or the store's error; other callers get the cached value."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    store.version = 2
    assert await cache.load_stored_value() == "value 2"
    store.is_down = True
    time.advance(1)
    with pytest.raises(OSError, match="down"):
        await cache.load_stored_value()
    assert await cache.load_current_value() == "value 2"


async def test_a_failing_store_without_a_cached_value_raises_an_error() -> None:
    """If the store fails at the first read, when no value is cached, the store's error is raised."""
    store = Store()
    store.is_down = True
    with pytest.raises(OSError, match="down"):
        await build_cache(store, VirtualTime()).load_current_value()


async def start_waiting_calls(cache: VersionedCache[str], count: int) -> list[asyncio.Task[str]]:
    """Start calls of the cache; return them when all wait for the store."""
    calls = [asyncio.create_task(cache.load_current_value()) for _ in range(count)]
    await asyncio.sleep(0)
    return calls


@pytest.mark.parametrize("is_down", [False, True])
async def test_callers_that_wait_for_one_read_share_its_result(*, is_down: bool) -> None:
    """Callers that wait while the store is read do not read it again, also if the read fails or is slow."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    time.advance(11)
    store.gate.clear()
    calls = await start_waiting_calls(cache, 12)
    time.advance(15)
    store.is_down = is_down
    store.gate.set()
    assert await asyncio.gather(*calls) == ["value 1"] * 12
    assert store.reads == 2


async def test_callers_that_wait_for_a_failing_read_share_its_error() -> None:
    """If the store fails and no value is cached, all callers that wait for the read get its error."""
    store = Store()
    store.gate.clear()
    calls = await start_waiting_calls(build_cache(store, VirtualTime()), 12)
    store.is_down = True
    store.gate.set()
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(error) for error in errors] == ["down"] * 12
    assert store.reads == 1


async def test_after_a_slow_failure_the_cached_value_is_returned_without_a_read() -> None:
    """The time until the next read counts from the end of a failed read, which can take longer than this time."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    time.advance(11)
    store.gate.clear()
    [call] = await start_waiting_calls(cache, 1)
    time.advance(15)
    store.is_down = True
    store.gate.set()
    assert await call == "value 1"
    assert await cache.load_current_value() == "value 1"
    assert store.reads == 2


async def test_a_value_that_becomes_too_old_during_a_failing_read_is_not_returned() -> None:
    """The age of the cached value is measured after the read has failed."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    time.advance(59)
    store.gate.clear()
    calls = await start_waiting_calls(cache, 2)
    time.advance(2)
    store.is_down = True
    store.gate.set()
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(error) for error in errors] == ["down", "down"]


async def test_a_caller_after_an_invalidation_does_not_share_an_earlier_read() -> None:
    """A read that began before an invalidation can have the earlier value, so later callers read the store again."""
    store, time = Store(), VirtualTime()
    cache = build_cache(store, time)
    await cache.load_current_value()
    time.advance(11)
    store.gate.clear()
    [earlier] = await start_waiting_calls(cache, 1)
    store.version = 2
    cache.invalidate()
    later = await start_waiting_calls(cache, 2)
    store.gate.set()
    assert await earlier == "value 1"
    assert await asyncio.gather(*later) == ["value 2", "value 2"]
    assert store.loads == 2


async def test_a_cancelled_read_is_repeated_by_the_next_caller() -> None:
    """If the caller that reads the store is cancelled, the next waiting caller reads it."""
    store = Store()
    store.gate.clear()
    first, second = await start_waiting_calls(build_cache(store, VirtualTime()), 2)
    first.cancel()
    store.gate.set()
    assert await second == "value 1"
    assert store.reads == 2
