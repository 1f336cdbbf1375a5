"""Tests of the filter that recognises keys of recent messages."""

import random
from datetime import datetime, timedelta

from emulators.kusto.recent_keys import RecentKeys, TimeRange, to_keys

START = datetime(2026, 1, 5)  # noqa: DTZ001  the emulator stores naive times in UTC
SMALL = 1 << 12


def build_pairs(seed: int, count: int) -> list[tuple[int, int]]:
    """Return random keys, which are distributed like hashes."""
    source = random.Random(seed)
    return [(source.getrandbits(64), source.getrandbits(64)) for _ in range(count)]


def build_time_range(hour: int) -> TimeRange:
    """Return the time range that contains only the given instant."""
    return TimeRange(START + timedelta(hours=hour), START + timedelta(hours=hour))


def test_every_stored_key_is_found() -> None:
    """A key that was stored is always found."""
    keys = RecentKeys(SMALL)
    pairs = build_pairs(1, 2_000)
    for number in range(0, 2_000, 70):
        keys.add(to_keys(pairs[number : number + 70]), build_time_range(number))
    found, _ = keys.find_possible(to_keys(pairs))
    assert found.all()


def test_new_keys_are_nearly_always_new() -> None:
    """A full filter reports fewer than one of 1,000 new keys as possibly stored."""
    keys = RecentKeys()
    keys.add(to_keys(build_pairs(2, 100_000)), build_time_range(0))
    found, _ = keys.find_possible(to_keys(build_pairs(3, 10_000)))
    assert found.sum() < 10
    assert RecentKeys().find_possible(to_keys(build_pairs(3, 10)))[1] is None


def test_many_keys_at_a_time_are_stored_like_single_ones() -> None:
    """Keys that are added in large batches are found like keys that are added in small batches."""
    pairs = build_pairs(8, 40_000)
    bulk, single = RecentKeys(), RecentKeys()
    bulk.add(to_keys(pairs), build_time_range(0))
    for number in range(0, 40_000, 1_000):
        single.add(to_keys(pairs[number : number + 1_000]), build_time_range(0))
    others = to_keys(build_pairs(9, 20_000) + pairs[::50])
    assert bulk.find_possible(to_keys(pairs))[0].all()
    assert (bulk.find_possible(others)[0] == single.find_possible(others)[0]).all()


def test_range_covers_the_generations_with_hits() -> None:
    """The returned time range contains the time at which each found key was stored."""
    keys = RecentKeys(SMALL)
    first, second = build_pairs(4, 170), build_pairs(5, 170)
    keys.add(to_keys(first), build_time_range(0))
    keys.add(to_keys(second), build_time_range(5))
    assert keys.find_possible(to_keys(first[:1]))[1] == build_time_range(0)
    assert keys.find_possible(to_keys(second[-1:]))[1] == build_time_range(5)
    assert keys.find_possible(to_keys([first[0], second[-1]]))[1] == TimeRange(
        build_time_range(0).oldest, build_time_range(5).newest
    )


def test_old_generations_are_forgotten() -> None:
    """A generation is removed when all of its keys were stored before the given time."""
    keys = RecentKeys(SMALL)
    first, second = build_pairs(6, 170), build_pairs(7, 10)
    keys.add(to_keys(first), build_time_range(0))
    keys.add(to_keys(second), build_time_range(5))
    keys.forget_before(build_time_range(5).oldest)
    assert keys.find_possible(to_keys(first[:1]))[1] is None
    assert keys.find_possible(to_keys(second))[0].all()


def test_no_keys() -> None:
    """An empty batch of keys stores nothing and finds nothing."""
    keys = RecentKeys(SMALL)
    keys.add(to_keys([]), build_time_range(0))
    assert keys.find_possible(to_keys([]))[1] is None
