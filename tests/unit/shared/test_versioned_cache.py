"""Tests of the cache of a stored value that has a version."""

import pytest

from shared.versioned_cache import VersionedCache
from tests.virtual_time import VirtualTime


class Store:
    """Fake store of one value that counts its reads, or raises the error that the test has set."""

    def __init__(self) -> None:
        self.version = 1
        self.is_down = False
        self.loads = 0

    async def read_version(self) -> int:
        """Return the version."""
        if self.is_down:
            raise OSError("down")
        return self.version

    async def load(self) -> tuple[int, str]:
        """Return the version and the value."""
        self.loads += 1
        if self.is_down:
            raise OSError("down")
        return self.version, f"value {self.version}"


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


async def test_a_failing_store_without_a_cached_value_raises_an_error() -> None:
    """If the store fails at the first read, when no value is cached, the store's error is raised."""
    store = Store()
    store.is_down = True
    with pytest.raises(OSError, match="down"):
        await build_cache(store, VirtualTime()).load_current_value()
