"""Random numbers and random walks without state: each value is a function of a stream's key and an index.

Simulators can therefore restart at any tick and produce the same values again.
"""

import math
from dataclasses import dataclass, field
from hashlib import blake2b

_MASK_32 = 2**32 - 1
SPAN = 2**20
"""Number of ticks of a walk; a day has 864,000 ticks of the shortest interval (100 ms)."""


def derive_stream_key(*parts: object) -> bytes:
    """Return the key of a stream; other parts give an independent stream."""
    return blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()


def uniform_at(key: bytes, index: int) -> float:
    """Return a number of the stream by index, uniform in [0, 1)."""
    return (_draw_bits(key, index) >> 11) * 2.0**-53


def normal_at(key: bytes, index: int) -> float:
    """Return a number of the stream by index, normal with mean 0 and deviation 1 (Box and Muller, 1958)."""
    bits = _draw_bits(key, index)
    radius = math.sqrt(-2.0 * math.log(((bits >> 32) + 1) / 2**32))
    return radius * math.cos(math.tau * (bits & _MASK_32) / 2**32)


@dataclass(slots=True)
class RandomWalk:
    """Random walk with direct access to any position.

    The walk is built by bisection (Paul Lévy's construction of Brownian motion): the end of the day is drawn first,
    then each midpoint from its two neighbours. At whole ticks this is exactly a walk of independent normal steps. A
    position costs at most 20 draws after a restart, and two on average from one tick to the next.

    Attributes:
        key: key of the stream; the same key gives the same walk.
    """

    key: bytes
    _left: tuple[int, float] = (0, 0.0)
    _right: list[tuple[int, float]] = field(default_factory=list)

    def position_at(self, tick: int) -> float:
        """Return the sum of the first ``tick`` steps, each normal with deviation 1.

        Args:
            tick: from 0 to 2**20 inclusive, in any order; ascending order is fastest.
        """
        if tick < self._left[0] or not self._right:
            self._left, self._right = (0, 0.0), [(SPAN, normal_at(self.key, SPAN) * SPAN**0.5)]
        while self._right and self._right[-1][0] <= tick:
            self._left = self._right.pop()
        while self._left[0] < tick:
            middle = self._draw_midpoint()
            if middle[0] <= tick:
                self._left = middle
            else:
                self._right.append(middle)
        return self._left[1]

    def _draw_midpoint(self) -> tuple[int, float]:
        (left, low), (right, high) = self._left, self._right[-1]
        place = (left + right) // 2
        deviation = (right - left) ** 0.5 / 2
        return place, (low + high) / 2 + normal_at(self.key, place) * deviation


def reflect(value: float, low: float, high: float) -> float:
    """Return a value after reflection at the ends of a range; ``low`` if the range is empty."""
    span = high - low
    if span <= 0:
        return low
    folded = (value - low) % (2 * span)
    return low + min(folded, 2 * span - folded)


def _draw_bits(key: bytes, index: int) -> int:
    return int.from_bytes(blake2b(index.to_bytes(8, "little"), digest_size=8, key=key).digest(), "little")
