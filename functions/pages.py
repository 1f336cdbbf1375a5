"""Static browser pages: web console, API Explorer, GraphiQL. They are public; API calls need the user's credential.

Files are cached in memory and sent with ETags and a strict Content-Security-Policy.

This module is separate from ``oauth_consent`` because the pages are a different endpoint group.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypedDict
from urllib.parse import urlsplit

from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.operation_docs import ETAG, TEXT_FORM, DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group
from shared.http.unknown_names import UnknownNames
from shared.settings import Settings
from shared.wiring import services

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy that allows scripts and requests of this origin only.

Inline styles are allowed, because third-party libraries of the pages need them.
"""

STRICT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{origins}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content-Security-Policy for pages without third-party code: no inline styles, no text inserted as markup.

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
GROUP = Group("pages", is_versioned=False)
_STATIC = Path(__file__).parents[1] / "static"


@dataclass(frozen=True, slots=True)
class _CachedFile:
    content: bytes
    compressed: bytes | None
    etag: str
    content_type: str


class StaticFiles:
    """Static files of one page, which are served from a folder.

    Args:
        folder: folder with ``index.html`` and its assets; it may be missing.
        policy: Content-Security-Policy of the replies.
    """

    def __init__(self, folder: Path, policy: str = POLICY) -> None:
        self._folder = folder
        self._policy = policy
        self._cache: dict[str, _CachedFile] = {}

    async def build_page_reply(self, request: Request) -> Reply:
        """Return ``index.html``, or a page with build instructions if ``index.html`` is missing."""
        try:
            return await self.build_file_reply(request, "index.html")
        except WorkspaceError:
            headers = {"Content-Type": _TYPES[".html"], "Content-Security-Policy": self._policy}
            return Reply(200, _MISSING_PAGE.encode(), headers)

    async def build_file_reply(self, request: Request, relative_path: str) -> Reply:
        """Build the reply with a file; ``relative_path`` is the file's path relative to the folder.

        Raises:
            WorkspaceError: NOT_FOUND ``FILE_NOT_FOUND``.
        """
        cached = self._cache.get(relative_path) or await services().runtime.run_in_thread(
            self._find_and_cache_file, relative_path
        )
        if cached is None:
            raise WorkspaceError(Kind.NOT_FOUND, "FILE_NOT_FOUND", "File not found.")
        headers = {
            "Content-Type": cached.content_type,
            "ETag": cached.etag,
            "Cache-Control": _CACHE_FOR_EVER if relative_path.startswith(HASHED) else "no-cache",
            "Vary": "Accept-Encoding",
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
        }
        if cached.etag in request.headers.get("if-none-match", ""):
            return Reply(304, b"", headers)
        if cached.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Reply(200, cached.compressed, {**headers, "Content-Encoding": "gzip"})
        return Reply(200, cached.content, headers)

    def _find_and_cache_file(self, relative_path: str) -> _CachedFile | None:
        # The name is looked up in the list of files and never becomes a path, which prevents path traversal.
        paths = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*") if path.is_file()}
        path = paths.get(relative_path)
        if path is None or path.suffix not in _TYPES:
            return None
        content = path.read_bytes()
        compressed = gzip.compress(content, mtime=0) if len(content) >= _SMALLEST_COMPRESSED else None
        etag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
        self._cache[relative_path] = _CachedFile(content, compressed, etag, _TYPES[path.suffix])
        return self._cache[relative_path]


@dataclass(frozen=True, slots=True)
class ConsoleSignIn:
    """OAuth client with which the web console signs users in through Entra ID.

    The console is a public client, which has no secret: it uses the authorization code flow with PKCE (RFC 7636).

    Attributes:
        address: base URL of the tenant's ``authorize`` and ``token`` endpoints.
        client_id: client id of the console's app registration.
        scope: requested scopes: the user's identity, and a token for this service's audience.
    """

    address: str
    client_id: str
    scope: str

    @property
    def origin(self) -> str:
        """Origin (scheme, host and port) of Entra ID's token endpoint."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    def to_json(self) -> Mapping[str, str]:
        """Return the sign-in settings for the console's page as JSON."""
        return {
            "authorizeUrl": f"{self.address}/authorize",
            "tokenUrl": f"{self.address}/token",
            "clientId": self.client_id,
            "scope": self.scope,
        }


def build_console_sign_in_if_configured(settings: Settings) -> ConsoleSignIn | None:
    """Return the console's Entra ID client; None unless tenant, audience and client id are all configured."""
    if not (settings.entra_tenant_id and settings.entra_audience and settings.entra_console_client_id):
        return None
    address = f"{settings.entra_authority.rstrip('/')}/{settings.entra_tenant_id}/oauth2/v2.0"
    return ConsoleSignIn(address, settings.entra_console_client_id, f"openid {settings.entra_audience}/.default")


class SignInAddresses(TypedDict):
    """Entra ID endpoints and client id of the web console's sign-in."""

    authorizeUrl: str
    tokenUrl: str
    clientId: str
    scope: str


class ConsoleConfig(TypedDict):
    """Public settings of the web console."""

    entra: SignInAddresses | None


CONSOLE_CONFIG_DOCS = OperationDocs(
    (DocumentedReply(200, "The public settings.", ConsoleConfig, {"entra": None}),), listed=False
)

_EXPLORER = StaticFiles(_STATIC / "explorer")
_GRAPHIQL = StaticFiles(_STATIC / "graphiql")

PAGE_DOCS = OperationDocs(
    (DocumentedReply(200, "The page.", forms={"text/html": TEXT_FORM}, headers=ETAG),), listed=False
)
FILE_DOCS = OperationDocs((DocumentedReply(200, "The file.", forms={"*/*": TEXT_FORM}, headers=ETAG),), listed=False)


def _build_redirect_docs(status: int) -> OperationDocs:
    reply = DocumentedReply(status, "Redirect to the page.", headers={"Location": "Path of the page."})
    return OperationDocs((reply,), listed=False)


@GROUP.endpoint("GET", "", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=_build_redirect_docs(302))
async def redirect_to_console(_: Call) -> Reply:
    """Redirect to the web console."""
    return Reply(302, b"", {"Location": "/console/"})


@GROUP.endpoint("GET", "console", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=_build_redirect_docs(308))
async def redirect_to_console_with_slash(_: Call) -> Reply:
    """Redirect to the web console's address with a trailing slash."""
    return Reply(308, b"", {"Location": "/console/"})


@GROUP.endpoint("GET", "console/", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=PAGE_DOCS)
async def console(call: Call) -> Reply:
    """Return the web console, which requests an API key or a token from the user."""
    return await _get_console_files().build_page_reply(call.request)


@GROUP.endpoint(
    "GET", "console/config.json", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=CONSOLE_CONFIG_DOCS
)
async def console_config(_: Call) -> Reply:
    """Return the public sign-in settings of the web console."""
    sign_in = build_console_sign_in_if_configured(services().settings)
    return build_json_reply({"entra": sign_in.to_json() if sign_in else None}, headers={"Cache-Control": "no-cache"})


@GROUP.endpoint("GET", "console/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=FILE_DOCS)
async def console_file(call: Call) -> Reply:
    """Return a file of the web console."""
    return await _get_console_files().build_file_reply(call.request, call.path["file"])


@GROUP.endpoint("GET", "oi-api/explorer", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=PAGE_DOCS)
async def explorer(call: Call) -> Reply:
    """Return the API Explorer, which requests a token from the user."""
    return await _EXPLORER.build_page_reply(call.request)


@GROUP.endpoint("GET", "oi-api/explorer/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=FILE_DOCS)
async def explorer_file(call: Call) -> Reply:
    """Return a file of the API Explorer."""
    return await _EXPLORER.build_file_reply(call.request, call.path["file"])


@GROUP.endpoint("GET", "v1/{workspaceId}/graphiql", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=PAGE_DOCS)
async def graphiql(call: Call) -> Reply:
    """Return GraphiQL, which requests an API key or a token from the user."""
    return await _GRAPHIQL.build_page_reply(call.request)


@GROUP.endpoint(
    "GET", "v1/{workspaceId}/graphiql/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=FILE_DOCS
)
async def graphiql_file(call: Call) -> Reply:
    """Return a file of GraphiQL."""
    return await _GRAPHIQL.build_file_reply(call.request, f"graphiql/{call.path['file']}")


@cache
def _get_console_files() -> StaticFiles:
    """Return the web console's files.

    The Content-Security-Policy of the files allows calls to the live stream, Entra ID and the storage account with the
    files of imports, if these are configured.
    """
    return StaticFiles(_STATIC / "console", _build_console_content_security_policy(services().settings))


def _build_console_content_security_policy(settings: Settings) -> str:
    sign_in = build_console_sign_in_if_configured(settings)
    allowed = (
        _build_websocket_origin(settings.web_pubsub_endpoint),
        sign_in.origin if sign_in else "",
        _build_origin(settings.blob_endpoint),
    )
    origins = "".join(f" {origin}" for origin in allowed if origin)
    return STRICT_POLICY.format(origins=origins)


def _build_origin(url: str) -> str:
    """Return the origin of a URL; empty if the URL has no host."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _build_websocket_origin(http_url: str) -> str:
    """Convert an HTTP URL to its WebSocket origin (ws or wss); empty if the URL has no host."""
    parts = urlsplit(http_url)
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}" if parts.netloc else ""
