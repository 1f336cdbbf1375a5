"""Checks of a request's URL and headers, and decoding of encoded bodies with a limit (RFC 9110 section 8.4)."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.http.messages import Request

MAX_TARGET: Final = 32_768
"""Maximum bytes of path and query; an audit scope's 1,024 characters can each take 12 percent-encoded bytes."""

MAX_HEADERS: Final = 100
MAX_HEADER_BYTES: Final = 131_072
"""Maximum bytes of all header names and values, including four bytes of separators for each header."""

_SEPARATORS: Final = 4
_PIECE_BYTES: Final[Mapping[str, int]] = {"gzip": 4_096, "zstd": 256}
"""Number of encoded bytes that are decoded at once; they decode to at most 8 MiB, so that memory stays bounded."""

MAX_DECODED_BODIES: Final = 16
"""Maximum number of decoded bodies that an instance holds in memory at once; one principal gets half of them.

A decoded body has up to 16 MiB, and its encoded form can be a thousand times smaller. Limits on received bytes
therefore do not limit the memory of decoded bodies.
"""

_MAX_MEMBERS: Final = 1_000
"""Maximum number of gzip members or zstd frames in a body; each costs time, even if it is empty."""

_ZSTD_MAX_WINDOW_BYTES: Final = 8 * 1024 * 1024
"""Size in bytes of the largest zstd window that RFC 8878 section 3.1.1.1.2 recommends to support."""

_GZIP_WINDOW: Final = 31
"""Parameter ``wbits`` of zlib for gzip with the largest window."""


def count_header_bytes(name: str | bytes, value: str | bytes) -> int:
    """Return the size of a header in bytes, including its separators."""
    return len(name) + len(value) + _SEPARATORS


def check_url_and_header_sizes(request: Request) -> None:
    """Reject a request whose URL or headers exceed the limits.

    Raises:
        WorkspaceError: TARGET_TOO_LONG ``URI_TOO_LONG`` for the URL; HEADERS_TOO_LARGE ``HEADERS_TOO_LARGE`` for the
            headers.
    """
    if len(request.path) + len(request.query) + bool(request.query) > MAX_TARGET:
        raise build_target_too_long_error()
    size = sum(count_header_bytes(name, value) for name, value in request.headers.items())
    if len(request.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise build_headers_too_large_error()


def reject_missing_chunked_body(request: Request) -> None:
    """Reject a request whose chunked body is missing.

    The Functions host on Azure passes a body on only if the request has a Content-Length (``ToRpcHttp`` of
    Azure/azure-functions-host). A request whose body the host dropped must not be processed as one without a body.

    Raises:
        WorkspaceError: LENGTH_REQUIRED ``LENGTH_REQUIRED`` (RFC 9110 section 15.5.12).
    """
    headers = request.headers
    if "transfer-encoding" in headers and "content-length" not in headers and not request.body:
        raise WorkspaceError(
            Kind.LENGTH_REQUIRED,
            "LENGTH_REQUIRED",
            "The body was not received; send it with the header `Content-Length` instead of `Transfer-Encoding`.",
        )


def build_target_too_long_error() -> WorkspaceError:
    """Build the error for a path and query that are too long (RFC 9110 section 15.5.15)."""
    return WorkspaceError(
        Kind.TARGET_TOO_LONG, "URI_TOO_LONG", f"Path and query must have at most {MAX_TARGET} bytes together."
    )


def build_headers_too_large_error() -> WorkspaceError:
    """Build the error for too many or too large headers (RFC 6585 section 5)."""
    return WorkspaceError(
        Kind.HEADERS_TOO_LARGE,
        "HEADERS_TOO_LARGE",
        f"A request must have at most {MAX_HEADERS} headers with {MAX_HEADER_BYTES} bytes together.",
    )


class _Decoder(Protocol):
    """Decoder of compressed data: one gzip member or one zstd frame."""

    @property
    def eof(self) -> bool:
        """True if the gzip member or zstd frame is completely decoded."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end of the gzip member or zstd frame."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """Decode the next bytes of the gzip member or zstd frame."""
        ...


def read_content_encodings(request: Request) -> list[str]:
    """Return the content encodings of a request's body in the order of their application, except ``identity``."""
    names = (name.strip().lower() for name in request.headers.get("content-encoding", "").split(","))
    return [name for name in names if name not in {"", "identity"}]


def decode_body(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decode a request body. Call this function in a worker thread, because a small body can become large.

    Args:
        body: the encoded bytes.
        encoding: ``gzip`` or ``zstd``.
        max_bytes: maximum size of the decoded body in bytes.

    Raises:
        WorkspaceError: TOO_LARGE ``BODY_TOO_LARGE``, as soon as the decoded bytes exceed the limit; INVALID
            ``BODY_NOT_DECODABLE`` if the body is not valid data of this encoding or ends too early.
    """
    parts: list[bytes] = []
    size = 0
    for part in _iterate_decoded_parts(body, encoding):
        size += len(part)
        if size > max_bytes:
            raise build_body_too_large_error(max_bytes)
        parts.append(part)
    return b"".join(parts)


def _iterate_decoded_parts(body: bytes, encoding: str) -> Iterator[bytes]:
    """Yield the decoded bytes in parts; the data can consist of several gzip members or zstd frames."""
    decoder, members = DECODERS[encoding](), 1
    piece_bytes = _PIECE_BYTES[encoding]
    for start in range(0, len(body), piece_bytes):
        piece = body[start : start + piece_bytes]
        while piece:
            if decoder.eof:
                decoder, members = DECODERS[encoding](), members + 1
                if members > _MAX_MEMBERS:
                    raise _build_undecodable_error(f"the {encoding} data must have at most {_MAX_MEMBERS} members")
            yield _decode_piece(decoder, piece, encoding)
            piece = decoder.unused_data if decoder.eof else b""
    if not decoder.eof:
        raise _build_undecodable_error(f"the {encoding} data end too early")


def _decode_piece(decoder: _Decoder, piece: bytes, encoding: str) -> bytes:
    try:
        return decoder.decompress(piece)
    except Exception as error:
        # The two libraries raise different exceptions, whose messages describe internals.
        raise _build_undecodable_error(f"must be valid {encoding} data") from error


def build_body_too_large_error(max_bytes: int) -> WorkspaceError:
    """Build the error for a body that is too large, after decoding if it is encoded."""
    return WorkspaceError(Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body must have at most {max_bytes} bytes.")


def build_unsupported_encoding_error(supported: list[str]) -> WorkspaceError:
    """Build the error for a content encoding that an operation does not accept (RFC 9110 section 15.5.16)."""
    if supported:
        detail = f"Header `Content-Encoding` must be one of {', '.join(supported)}, or be omitted."
    else:
        detail = "Encoded bodies are not supported; send the body without Content-Encoding."
    return WorkspaceError(Kind.UNKNOWN_ENCODING, "CONTENT_ENCODING_UNSUPPORTED", detail, supported=supported)


def _build_undecodable_error(message: str) -> WorkspaceError:
    return build_invalid_field_error("body", message, code="BODY_NOT_DECODABLE")


def _create_zstd_decoder() -> _Decoder:
    from zstandard import ZstdDecompressor  # noqa: PLC0415  only few requests are encoded

    return ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES).decompressobj()


DECODERS: Final[Mapping[str, Callable[[], _Decoder]]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP_WINDOW),
    "zstd": _create_zstd_decoder,
}
"""Functions that create a decoder, by name of the content encoding."""
