"""Random numbers without state: the n-th number of a stream is a function of the stream's key and n alone."""

import math
from hashlib import blake2b

_MASK_32 = 2**32 - 1


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


def _bits(key: bytes, index: int) -> int:
    return int.from_bytes(blake2b(index.to_bytes(8, "little"), digest_size=8, key=key).digest(), "little")
