"""Files of browser pages: read once, compressed once, answered with validators and a strict policy."""

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
"""Scripts from files of this origin only, requests to this origin only; libraries style elements inline."""

STRICT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{origins}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""For pages that are all ours: no style elements, no text that becomes markup.

``origins`` stands for further origins to call, each after a blank.
"""

HASHED: Final = "assets/"
"""Names below it hold a hash of their content, so that whoever has one need not ask again."""

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
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_SMALLEST_COMPRESSED: Final = 1024
_MISSING_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Page not built</title></head>
<body><h1>This page is not built</h1>
<p>Its files come from npm. Install Node.js 20 or later with npm, run <code>make assets</code>, and reload.
Everything else of the service works without it.</p></body></html>
"""


@dataclass(frozen=True, slots=True)
class _Kept:
    content: bytes
    compressed: bytes | None
    etag: str
    content_type: str


class StaticFiles:
    """The files of one page's folder, and of no other.

    Args:
        folder: holds ``index.html`` and what it loads; it may be missing.
        policy: the Content-Security-Policy of its answers.
    """

    def __init__(self, folder: Path, policy: str = POLICY) -> None:
        self._folder = folder
        self._policy = policy
        self._kept: dict[str, _Kept] = {}

    async def page(self, request: Request) -> Reply:
        """Return ``index.html``, or how to get it where it was not built."""
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
        kept = self._kept.get(name) or await asyncio.to_thread(self._read, name)
        if kept is None:
            raise WorkspaceError(Kind.NOT_FOUND, "FILE_NOT_FOUND", "This page has no such file.")
        headers = {
            "Content-Type": kept.content_type,
            "ETag": kept.etag,
            "Cache-Control": _FOR_GOOD if name.startswith(HASHED) else "no-cache",
            "Vary": "Accept-Encoding",
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
        }
        if kept.etag in request.headers.get("if-none-match", ""):
            return Reply(304, b"", headers)
        if kept.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Reply(200, kept.compressed, {**headers, "Content-Encoding": "gzip"})
        return Reply(200, kept.content, headers)

    def _read(self, name: str) -> _Kept | None:
        # A name leads to a file that the folder lists; nothing that a caller writes becomes a path.
        paths = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        path = paths.get(name)
        if path is None or path.suffix not in _TYPES:
            return None
        content = path.read_bytes()
        compressed = gzip.compress(content, mtime=0) if len(content) >= _SMALLEST_COMPRESSED else None
        etag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
        self._kept[name] = _Kept(content, compressed, etag, _TYPES[path.suffix])
        return self._kept[name]
