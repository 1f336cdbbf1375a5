"""Limits of the request target, the headers and buffered input of a request."""

from shared.errors import WorkspaceError
from shared.http.size_limits import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_TARGET,
    header_size,
    headers_too_large_error,
    target_too_long_error,
)


class HeadTooLarge(Exception):  # noqa: N818  stops the parser; ``HeadSizeCounter.error`` has the reply
    """Signal that the target or headers of a request are too large."""


class HeadSizeCounter:
    """Sizes of the target, the headers and the buffered input of a request.

    Attributes:
        error: the error of an exceeded limit, None if there is none.
    """

    def __init__(self) -> None:
        self.error: WorkspaceError | None = None
        self._target = self._headers = self._header_bytes = 0
        self._held_bytes = 0
        self._has_output = False

    def begin(self) -> None:
        """Reset the counters for a new request."""
        self._target = self._headers = self._header_bytes = 0
        self.note_output()

    def note_output(self) -> None:
        """Record that the parser produced output."""
        self._has_output = True

    def add_target(self, part: bytes) -> None:
        """Count a part of the request target.

        Raises:
            HeadTooLarge: the target is too long.
        """
        self.note_output()
        self._target += len(part)
        if self._target > MAX_TARGET:
            raise self._too_large(target_too_long_error())

    def add_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer.

        Raises:
            HeadTooLarge: there are too many headers, or they are too large.
        """
        self.note_output()
        self._headers += 1
        self._header_bytes += header_size(name, value)
        if self._headers > MAX_HEADERS or self._header_bytes > MAX_HEADER_BYTES:
            raise self._too_large(headers_too_large_error())

    def add_data(self, size: int) -> bool:
        """Count input of the parser; return False if it buffers too much.

        The parser buffers headers, trailers and chunk extensions of any size until they are complete.
        """
        self._held_bytes = 0 if self._has_output else self._held_bytes + size
        self._has_output = False
        if self._held_bytes > MAX_HEADER_BYTES:
            self.error = self.error or headers_too_large_error()
        return self._held_bytes <= MAX_HEADER_BYTES

    def _too_large(self, error: WorkspaceError) -> HeadTooLarge:
        self.error = error
        return HeadTooLarge(error.detail)
