"""Which HTTP is spoken here: a request in another one is told so by name, and not that it were none."""

import re
import sys
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import httptools

from shared.errors import Kind, WorkspaceError, invalid

_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^ ]+ HTTP/([0-9])(?:\.[0-9])?")
_MAJOR: Final = b"1"
_CODING: Final = b"transfer-encoding"


class UnsupportedHttpError(WorkspaceError):
    """What HTTP has and this host does not.

    Args:
        status: 501 or 505.
        code: UPPER_SNAKE, stable.
        detail: one sentence for a person.
    """

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(Kind.INVALID, code, detail)
        self.status = status


def check_protocol(version: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Return when a request's version and the coding of its body are ones that are spoken.

    Args:
        version: such as ``1.1``.
        headers: with names in lower case.

    Raises:
        UnspokenError: 505 for another major version (RFC 9110 section 15.6.6), 501 for a transfer coding beside
            ``chunked`` (RFC 9112 section 6.1).
    """
    if not version.startswith(f"{_MAJOR.decode()}."):
        raise _another_version()
    codings = {part.strip(b" \t").lower() for name, value in headers if name == _CODING for part in value.split(b",")}
    if codings - {b"", b"chunked"}:
        raise UnsupportedHttpError(
            HTTPStatus.NOT_IMPLEMENTED,
            "TRANSFER_CODING_NOT_IMPLEMENTED",
            "The body has a transfer coding; chunked is the only one that is taken.",
        )


def parse_failure(data: bytes, message: str) -> WorkspaceError:
    """Return what is told of a request that the parser gave up, inside its ``except``.

    Args:
        data: what was received last.
        message: the parser's own.
    """
    line = _LINE.match(data)
    if line is not None and line[1] != _MAJOR:
        return _another_version()
    if line is not None and isinstance(sys.exception(), httptools.HttpParserInvalidMethodError):
        detail = "The method of the request is not known."
        return UnsupportedHttpError(HTTPStatus.NOT_IMPLEMENTED, "METHOD_NOT_IMPLEMENTED", detail)
    return invalid("request", message)


def _another_version() -> UnsupportedHttpError:
    return UnsupportedHttpError(
        HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP_VERSION_NOT_SUPPORTED", "HTTP/1.1 is spoken here."
    )
