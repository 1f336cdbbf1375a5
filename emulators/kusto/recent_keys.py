"""Filter of recent message keys in memory, so that the search for duplicates does not read all keys of a day.

The table ``ingest.seen`` decides whether a message is a duplicate. Reading it took longer with each row of the day.
A Bloom filter answers "certainly new" for almost all messages, and names the time range of the keys that must be read
for the others. It may report a new key as possibly stored, but never the opposite. Separate from ``store``, because it
needs no database.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

type Keys = npt.NDArray[np.uint64]
"""Array with a row for each key: the higher and the lower 64 bits of the hash."""

FILTER_BITS = 1 << 25
"""Bits of one generation's filter, which are 4 MB; a power of two."""

_BITS_PER_KEY = 24
_PROBES = 12
"""Bits that each key sets. One of 70,000 new keys is reported as possibly stored in a full generation."""

_CHUNK_KEYS = 20_000
"""Keys whose bits are computed at a time, to limit the memory of intermediate results."""


class TimeRange(NamedTuple):
    """Time range in which keys were stored, both ends included; naive datetimes in UTC."""

    oldest: datetime
    newest: datetime


@dataclass(slots=True)
class _Generation:
    """Keys that were stored one after the other.

    Attributes:
        bits: filter of the keys.
        count: number of keys.
        stored: time range in which the keys were stored.
    """

    bits: npt.NDArray[np.uint8]
    count: int
    stored: TimeRange


class RecentKeys:
    """Filter of the keys of the last day, in generations that expire one by one; not thread-safe.

    Args:
        filter_bits: bits of one generation's filter; a power of two.
    """

    def __init__(self, filter_bits: int = FILTER_BITS) -> None:
        self._filter_bits = filter_bits
        self._capacity = filter_bits // _BITS_PER_KEY
        self._generations: list[_Generation] = []

    def add(self, keys: Keys, stored: TimeRange) -> None:
        """Add keys that were stored in a time range."""
        while len(keys):
            generation = self._get_or_open_generation(stored)
            chunk = keys[: self._capacity - generation.count]
            self._set_bits(generation.bits, chunk)
            generation.count += len(chunk)
            oldest, newest = generation.stored
            generation.stored = TimeRange(min(oldest, stored.oldest), max(newest, stored.newest))
            keys = keys[len(chunk) :]

    def find_possible(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], TimeRange | None]:
        """Return which keys may be stored, and the time range in which these were stored; None if all keys are new."""
        found = np.zeros(len(keys), dtype=bool)
        ranges: list[TimeRange] = []
        places = self._compute_places(keys)
        positions, masks = places >> np.uint64(3), _to_masks(places)
        for generation in self._generations:
            hits = ((generation.bits[positions] & masks) != 0).all(axis=1)
            if hits.any():
                found |= hits
                ranges.append(generation.stored)
        if not ranges:
            return found, None
        return found, TimeRange(min(each.oldest for each in ranges), max(each.newest for each in ranges))

    def forget_before(self, instant: datetime) -> None:
        """Remove the generations whose keys were all stored before a time."""
        self._generations = [each for each in self._generations if each.stored.newest >= instant]

    def _get_or_open_generation(self, stored: TimeRange) -> _Generation:
        if not self._generations or self._generations[-1].count >= self._capacity:
            self._generations.append(_Generation(np.zeros(self._filter_bits // 8, dtype=np.uint8), 0, stored))
        return self._generations[-1]

    def _set_bits(self, bits: npt.NDArray[np.uint8], keys: Keys) -> None:
        if len(keys) < _CHUNK_KEYS:
            places = self._compute_places(keys)
            np.bitwise_or.at(bits, places >> np.uint64(3), _to_masks(places))
            return
        # Setting a byte for each bit first takes a fifth of the time, but only for many keys.
        flags = np.zeros(self._filter_bits, dtype=bool)
        for start in range(0, len(keys), _CHUNK_KEYS):
            flags[self._compute_places(keys[start : start + _CHUNK_KEYS])] = True
        bits |= np.packbits(flags, bitorder="little")

    def _compute_places(self, keys: Keys) -> npt.NDArray[np.uint64]:
        """Return the filter bits of each key, computed from sums of the two independent halves of the key's hash."""
        steps = np.arange(_PROBES, dtype=np.uint64)
        odd = keys[:, 1:2] | np.uint64(1)
        return (keys[:, 0:1] + steps * odd) & np.uint64(self._filter_bits - 1)


def to_keys(pairs: Iterable[tuple[int, int]]) -> Keys:
    """Convert keys, each as its higher and lower 64 bits, to an array."""
    return np.array(list(pairs), dtype=np.uint64).reshape(-1, 2)


def _to_masks(places: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (places & np.uint64(7)).astype(np.uint8))
