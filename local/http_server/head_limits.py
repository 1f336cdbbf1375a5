"""Counts what a caller sends before and between the parts that an application sees, and says when it is too much."""

from shared.errors import WorkspaceError
from shared.http.size_limits import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_TARGET,
    header_size,
    headers_too_large,
    target_too_long,
)


class HeadTooLarge(Exception):  # noqa: N818  ends the parser's work; ``HeadSizes.error`` says what the caller is told
    """A request's target or its headers are too large."""


class HeadSizeCounter:
    """The sizes of one request's target and headers, and of what the parser holds back until it is whole.

    Attributes:
        error: what was too large, None as long as nothing was.
    """

    def __init__(self) -> None:
        self.error: WorkspaceError | None = None
        self._target = self._headers = self._header_bytes = 0
        self._held = 0
        self._told = False

    def begin(self) -> None:
        """Start again, with a request."""
        self._target = self._headers = self._header_bytes = 0
        self.tell()

    def tell(self) -> None:
        """Note that the parser gave something out."""
        self._told = True

    def add_target(self, part: bytes) -> None:
        """Count a part of the request target.

        Raises:
            HeadTooLarge: it is too long.
        """
        self.tell()
        self._target += len(part)
        if self._target > MAX_TARGET:
            raise self._too_large(target_too_long())

    def add_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer.

        Raises:
            HeadTooLarge: they are too many or too large.
        """
        self.tell()
        self._headers += 1
        self._header_bytes += header_size(name, value)
        if self._headers > MAX_HEADERS or self._header_bytes > MAX_HEADER_BYTES:
            raise self._too_large(headers_too_large())

    def add_data(self, size: int) -> bool:
        """Count bytes that the parser was fed; return whether it holds back no more than it may.

        A header, a trailer and an extension of a chunk are given out when they are whole, however long they are.
        """
        self._held = 0 if self._told else self._held + size
        self._told = False
        if self._held > MAX_HEADER_BYTES:
            self.error = self.error or headers_too_large()
        return self._held <= MAX_HEADER_BYTES

    def _too_large(self, error: WorkspaceError) -> HeadTooLarge:
        self.error = error
        return HeadTooLarge(error.detail)
