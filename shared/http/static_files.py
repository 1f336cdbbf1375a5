"""Static files of browser pages, cached in memory and sent with ETags and a strict Content-Security-Policy."""

import asyncio
import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Policy that allows scripts and requests of this origin only; libraries of the pages need inline styles."""

STRICT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{origins}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Policy for pages without third-party code: no inline styles, no text that is inserted as markup.

``origins`` is replaced by further origins that the page may call, each after a space.
"""

HASHED: Final = "assets/"
"""Folder of files whose names contain a hash of their content, so that browsers can cache them for ever."""

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}
_CACHE_FOR_EVER: Final = "public, max-age=31536000, immutable"
_SMALLEST_COMPRESSED: Final = 1024
_MISSING_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Page not built</title></head>
<body><h1>This page is not built</h1>
<p>Its files come from npm. Install Node.js 20 or later with npm, run <code>make assets</code>, and reload.
The rest of the service works without it.</p></body></html>
"""


@dataclass(frozen=True, slots=True)
class _CachedFile:
    content: bytes
    compressed: bytes | None
    etag: str
    content_type: str


class StaticFiles:
    """Files of one page's folder.

    Args:
        folder: folder with ``index.html`` and its assets; it may be missing.
        policy: Content-Security-Policy of the replies.
    """

    def __init__(self, folder: Path, policy: str = POLICY) -> None:
        self._folder = folder
        self._policy = policy
        self._cache: dict[str, _CachedFile] = {}

    async def page(self, request: Request) -> Reply:
        """Return ``index.html``, or a page with build instructions if it is missing."""
        try:
            return await self.file(request, "index.html")
        except WorkspaceError:
            headers = {"Content-Type": _TYPES[".html"], "Content-Security-Policy": self._policy}
            return Reply(200, _MISSING_PAGE.encode(), headers)

    async def file(self, request: Request, name: str) -> Reply:
        """Return a file by its name relative to the folder.

        Raises:
            WorkspaceError: NOT_FOUND ``FILE_NOT_FOUND``.
        """
        cached = self._cache.get(name) or await asyncio.to_thread(self._read, name)
        if cached is None:
            raise WorkspaceError(Kind.NOT_FOUND, "FILE_NOT_FOUND", "File not found.")
        headers = {
            "Content-Type": cached.content_type,
            "ETag": cached.etag,
            "Cache-Control": _CACHE_FOR_EVER if name.startswith(HASHED) else "no-cache",
            "Vary": "Accept-Encoding",
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
        }
        if cached.etag in request.headers.get("if-none-match", ""):
            return Reply(304, b"", headers)
        if cached.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Reply(200, cached.compressed, {**headers, "Content-Encoding": "gzip"})
        return Reply(200, cached.content, headers)

    def _read(self, name: str) -> _CachedFile | None:
        # The name is looked up in the list of files and never becomes a path, which prevents path traversal.
        paths = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        path = paths.get(name)
        if path is None or path.suffix not in _TYPES:
            return None
        content = path.read_bytes()
        compressed = gzip.compress(content, mtime=0) if len(content) >= _SMALLEST_COMPRESSED else None
        etag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
        self._cache[name] = _CachedFile(content, compressed, etag, _TYPES[path.suffix])
        return self._cache[name]
