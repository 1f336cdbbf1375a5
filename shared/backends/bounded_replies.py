"""Connections of aiohttp that limit how much they read of a reply from an untrusted server.

aiohttp processes all bytes that a socket delivers, and all interim replies (status 1xx), before other tasks run. A
server that sends them without end would block the event loop, so these connections stop reading at a limit.

This module is separate from ``outbound_http`` because it depends on internals of aiohttp.
"""

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

from shared.outbound.ports import OutboundFailedError

MAX_INTERIM_REPLIES: Final = 20
MAX_HEAD_BYTES: Final = 65_536
"""Maximum number of bytes before the body of a reply, with all interim replies."""
MAX_BODY_BYTES: Final = 65_536
"""Number of bytes after which the body of a reply is not read further.

A body of 10,000 bytes that arrives in chunks of one byte, with five bytes of framing each, is still read completely.
"""
_SLICE_BYTES: Final = 4_096
"""Number of bytes that are parsed before the limits are checked again, which takes a few milliseconds at most."""


class BoundedReplyConnector(aiohttp.TCPConnector):
    """Connector whose connections read a limited number of bytes and of interim replies (status 1xx) of each reply.

    A request fails with OutboundFailedError if the server exceeds a limit before the body of its reply.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(_BoundedReplyHandler, loop=self._loop))


class _BoundedReplyHandler(ResponseHandler):
    """Protocol of one connection; it counts the bytes and the interim replies (status 1xx) of each reply."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._has_status = False
        self._interim_count = 0
        self._byte_count = 0

    def set_response_params(self, **parameters: Any) -> None:
        """Reset the counters for the next reply; aiohttp calls this when it uses the connection for a request."""
        self._has_status = False
        self._interim_count = self._byte_count = 0
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        """Parse bytes from the server; stop if a limit is exceeded, or if the reply is already complete."""
        if self._parser is None or not data:
            super().data_received(data)
            return
        for start in range(0, len(data), _SLICE_BYTES):
            part = data[start : start + _SLICE_BYTES]
            if self.exception() is not None or self._is_reply_complete:
                self._abort_connection()
                return
            self._byte_count += len(part)
            if self._has_status and self._byte_count > MAX_BODY_BYTES:
                # Reading is paused below. If the body ends in this part, the base class releases the connection, which
                # must not be used again.
                self.force_close()
            super().data_received(part)
            if self._stop_if_limit_exceeded():
                return

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Count a parsed reply, and pass it to the request; fail the request after too many interim replies."""
        status = data[0].code
        if self._interim_count > MAX_INTERIM_REPLIES:
            return
        if status < HTTPStatus.OK and status != HTTPStatus.SWITCHING_PROTOCOLS:
            self._interim_count += 1
            if self._interim_count > MAX_INTERIM_REPLIES:
                self._fail_request(f"The server sent more than {MAX_INTERIM_REPLIES} interim replies (status 1xx).")
                return
        else:
            self._has_status = True
            self._byte_count = 0
        super().feed_data(data, size)

    @property
    def _is_reply_complete(self) -> bool:
        """True if the reply has ended, so that the server must not send anything before the next request."""
        return self._has_status and (self._payload is None or self._payload.is_eof())

    def _stop_if_limit_exceeded(self) -> bool:
        """Stop reading from the connection if the number of bytes exceeds its limit; return whether it does.

        Before the body of a reply, the request fails as well.
        """
        if self._has_status:
            if self._byte_count <= MAX_BODY_BYTES:
                return False
            # The request needs no more of the body, and closes the connection. The other method of aiohttp that pauses
            # would allow the reader of the body to resume.
            self._pause_reading_for_buffer()
            return True
        if self._byte_count <= MAX_HEAD_BYTES:
            return False
        self._fail_request(f"The server sent more than {MAX_HEAD_BYTES} bytes before the body of its reply.")
        return True

    def _fail_request(self, reason: str) -> None:
        self.set_exception(OutboundFailedError(reason))
        self._abort_connection()

    def _abort_connection(self) -> None:
        # The method abort() of the base class would delete the exception before the request reads it.
        if self.transport is not None:
            self.transport.abort()
