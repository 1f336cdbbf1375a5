"""Random numbers without state: the n-th number of a stream is a function of the stream's key and n alone."""

import math
from dataclasses import dataclass, field
from hashlib import blake2b

_MASK_32 = 2**32 - 1
SPAN = 2**20
"""Ticks that a walk covers; a day of the shortest interval (100 ms) has 864,000."""


def derive_stream_key(*parts: object) -> bytes:
    """Return the key of the stream that the parts name; other parts give an unrelated stream."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()


def uniform_at(key: bytes, index: int) -> float:
    """Return the stream's ``index``-th number, even in [0, 1)."""
    return (_bits(key, index) >> 11) * 2.0**-53


def normal_at(key: bytes, index: int) -> float:
    """Return the stream's ``index``-th number, normal with mean 0 and deviation 1 (Box and Muller, 1958)."""
    bits = _bits(key, index)
    radius = math.sqrt(-2.0 * math.log(((bits >> 32) + 1) / 2**32))
    return radius * math.cos(math.tau * (bits & _MASK_32) / 2**32)


@dataclass(slots=True)
class RandomWalk:
    """The walk of one key, with the neighbours that the last position was found between.

    Attributes:
        key: the noise stream; the same key gives the same walk.
    """

    key: bytes
    _left: tuple[int, float] = (0, 0.0)
    _right: list[tuple[int, float]] = field(default_factory=list)

    def position_at(self, tick: int) -> float:
        """Return the sum of the first ``tick`` steps, each normal with deviation 1.

        Args:
            tick: 0 up to and with 2**20, in any order; ascending is cheapest.
        """
        if tick < self._left[0] or not self._right:
            self._left, self._right = (0, 0.0), [(SPAN, normal_at(self.key, SPAN) * SPAN**0.5)]
        while self._right and self._right[-1][0] <= tick:
            self._left = self._right.pop()
        while self._left[0] < tick:
            middle = self._middle()
            if middle[0] <= tick:
                self._left = middle
            else:
                self._right.append(middle)
        return self._left[1]

    def _middle(self) -> tuple[int, float]:
        (left, low), (right, high) = self._left, self._right[-1]
        place = (left + right) // 2
        deviation = (right - left) ** 0.5 / 2
        return place, (low + high) / 2 + normal_at(self.key, place) * deviation


def reflect(value: float, low: float, high: float) -> float:
    """Return where a value comes to lie when the ends of a range reflect it; ``low`` when the range is empty."""
    span = high - low
    if span <= 0:
        return low
    folded = (value - low) % (2 * span)
    return low + min(folded, 2 * span - folded)


def _bits(key: bytes, index: int) -> int:
    return int.from_bytes(blake2b(index.to_bytes(8, "little"), digest_size=8, key=key).digest(), "little")
