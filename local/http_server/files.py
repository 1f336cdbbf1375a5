"""Download and upload of the embedded stores' files under ``/files/``, with signed links."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qsl, unquote

from local.http_server.uploads import Receive, UploadCheck, UploadHandler
from shared.backends.embedded.blobs import build_blob_path
from shared.backends.embedded.file_links import PATH, FileLink, FileLinks, LinkPermission
from shared.cold_data.ports import format_content_disposition
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import get_logger
from shared.timestamps import now

_LOGGER = get_logger("local.files")
_CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _ByteRange:
    """Range of bytes of a file, and the HTTP status of its reply; ``first`` is included, ``end`` is excluded."""

    status: int
    first: int
    end: int


class SignedLinkHandler:
    """ASGI handler of signed links to the embedded stores' files.

    Args:
        folder: folder with one subfolder for each container of files.
        links: verifies signed links.
        check_upload: checks that a blob can still be uploaded.
    """

    def __init__(self, folder: Path, links: FileLinks, check_upload: UploadCheck) -> None:
        self._folder = folder
        self._links = links
        self._uploads = UploadHandler(folder, check_upload)

    async def serve(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        """Process a GET or HEAD request for a file, with one optional range (RFC 9110 section 14) and an ETag.

        Requests to an upload link are passed to :class:`UploadHandler` instead.

        Raises:
            WorkspaceError: before anything is sent: LINK_INVALID if the signature does not match, LINK_EXPIRED,
                METHOD_NOT_ALLOWED, FILE_NOT_FOUND, or UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` if the key that signs
                links cannot be read. For an upload link, also the errors of ``UploadHandler.serve``.
            UploadInterruptedError: the client disconnected during an upload.
        """
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        linked = await asyncio.to_thread(self._require_valid_link, scope, query)
        if linked.permission is LinkPermission.WRITE:
            status, document = await self._uploads.serve(scope["method"], linked, query, receive)
            await _send_xml_reply(send, status, document, request_id)
            return
        if scope["method"] not in {"GET", "HEAD"}:
            raise _build_method_not_allowed_error()
        try:
            file = await asyncio.to_thread(build_blob_path(self._folder / linked.container, linked.name).open, "rb")
        except (OSError, ValueError):
            raise WorkspaceError(Kind.NOT_FOUND, "FILE_NOT_FOUND", "The file no longer exists.") from None
        with file:
            headers = [*_build_download_headers(linked), (b"x-request-id", request_id.encode())]
            await _send_file(scope, receive, send, file, headers)

    def _require_valid_link(self, scope: Scope, query: Mapping[str, str]) -> FileLink:
        path = scope["raw_path"].decode("latin-1").removeprefix(PATH)
        container, _, name = path.partition("/")
        try:
            linked = self._links.parse_link_if_signature_is_valid(unquote(container), unquote(name), query)
        except OSError as error:
            _LOGGER.warning("the key of file links cannot be used: %s", error)
            detail = "The service cannot verify the link at the moment; try again later."
            raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", detail) from error
        if linked is None or "/" in linked.container or linked.container.startswith("."):
            raise WorkspaceError(
                Kind.FORBIDDEN, "LINK_INVALID", "The link is invalid or was changed; request a new one."
            )
        if linked.expires_at <= now():
            raise WorkspaceError(Kind.FORBIDDEN, "LINK_EXPIRED", "The link has expired; request a new one.")
        return linked


def _build_method_not_allowed_error() -> WorkspaceError:
    detail = "Files support only GET and HEAD."
    return WorkspaceError(Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail, allow=["GET", "HEAD"])


async def _send_xml_reply(send: Send, status: int, document: bytes, request_id: str) -> None:
    headers = [
        (b"content-length", str(len(document)).encode()),
        (b"cache-control", b"private, no-store"),
        (b"x-request-id", request_id.encode()),
    ]
    if document:
        headers.append((b"content-type", b"application/xml"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": document})


def _build_download_headers(linked: FileLink) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", format_content_disposition(linked.file_name).encode("ascii")),
        (b"accept-ranges", b"bytes"),
        (b"cache-control", b"private, no-store"),
    ]


async def _send_file(
    scope: Scope, receive: Receive, send: Send, file: IO[bytes], headers: list[tuple[bytes, bytes]]
) -> None:
    found = os.fstat(file.fileno())
    etag = f'"{found.st_mtime_ns:x}-{found.st_size:x}"'.encode()
    given = dict(scope["headers"])
    headers.append((b"etag", etag))
    if etag in (each.strip() for each in given.get(b"if-none-match", b"").split(b",")):
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    # Only GET has ranges (RFC 9110 section 14.2).
    has_range = scope["method"] == "GET" and given.get(b"if-range", etag) == etag
    requested = given.get(b"range", b"") if has_range else b""
    part = _parse_range(requested.decode("latin-1"), found.st_size)
    headers.append((b"content-length", str(part.end - part.first).encode()))
    if part.status == 206:  # noqa: PLR2004  Partial Content
        headers.append((b"content-range", f"bytes {part.first}-{part.end - 1}/{found.st_size}".encode()))
    elif part.status == 416:  # noqa: PLR2004  Range Not Satisfiable
        headers.append((b"content-range", f"bytes */{found.st_size}".encode()))
    await send({"type": "http.response.start", "status": part.status, "headers": headers})
    # The server ignores what is sent after a disconnect, so without this the whole file would still be read.
    disconnect = asyncio.create_task(wait_for_disconnect(receive))
    try:
        byte_range = part if scope["method"] == "GET" else _ByteRange(part.status, 0, 0)
        await _send_byte_range(send, file, byte_range, disconnect.done)
    finally:
        disconnect.cancel()


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client of a request has disconnected; ignore the parts of the body that arrive until then."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_byte_range(
    send: Send, file: IO[bytes], byte_range: _ByteRange, has_disconnected: Callable[[], bool]
) -> None:
    """Send a range of a file; stop if the client has disconnected."""
    file.seek(byte_range.first)
    remaining = byte_range.end - byte_range.first
    while remaining:
        if has_disconnected():
            return
        chunk = await asyncio.to_thread(file.read, min(remaining, _CHUNK))
        if not chunk:
            raise OSError("a stored file was truncated while it was being sent")
        remaining -= len(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _parse_range(range_header: str, file_size: int) -> _ByteRange:
    """Parse a Range header; return the range of the whole file if the header is invalid or names several ranges."""
    found = _RANGE.fullmatch(range_header.replace(" ", ""))
    if found is None or not (found[1] or found[2]):
        return _ByteRange(200, 0, file_size)
    if found[1]:
        first, end = int(found[1]), min(int(found[2]) + 1, file_size) if found[2] else file_size
        if found[2] and int(found[2]) < int(found[1]):
            return _ByteRange(200, 0, file_size)
    else:
        first, end = max(0, file_size - int(found[2])), file_size
    return _ByteRange(206, first, end) if first < end else _ByteRange(416, 0, 0)
