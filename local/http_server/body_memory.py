"""Limit on the memory for the bodies of requests that the local host receives at the same time.

Separate from ``application``, because it needs no HTTP. The host receives a body completely before the app checks the
caller's credential, so without this limit callers without a credential could use up the memory.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from shared.errors import Kind, WorkspaceError

MAX_BYTES: Final = 268_435_456
"""Maximum number of counted bytes of all bodies: 256 MiB."""

FREE_BYTES: Final = 65_536
"""Number of bytes of each body that do not count, so that large bodies do not delay requests with small ones."""

RETRY_AFTER_SECONDS: Final = 5


class BodyMemory:
    """Counter of the bytes of the request bodies of one kind that are in memory.

    Args:
        max_bytes: maximum number of counted bytes of these bodies together.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._used = 0

    @contextmanager
    def open_body_byte_counter(self) -> Iterator[Callable[[int], None]]:
        """Context manager for one request body: yield a function that counts received bytes of the body.

        The function raises WorkspaceError UNAVAILABLE ``OVERLOADED`` if all bodies together need too much memory. After
        the block, the bytes of this body no longer count.
        """
        size = counted = 0

        def count_bytes(added_bytes: int) -> None:
            nonlocal size, counted
            size += added_bytes
            further = max(0, size - FREE_BYTES) - counted
            if self._used + further > self._max_bytes:
                raise _build_overloaded_error()
            counted += further
            self._used += further

        try:
            yield count_bytes
        finally:
            self._used -= counted


def _build_overloaded_error() -> WorkspaceError:
    detail = "The bodies of concurrent requests need too much memory; send the request again later."
    return WorkspaceError(Kind.UNAVAILABLE, "OVERLOADED", detail, retryAfter=RETRY_AFTER_SECONDS)
