"""Static browser pages: web console, API Explorer, GraphiQL. They are public; API calls need the user's credential."""

from functools import cache
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from shared.auth.console_sign_in import build_console_sign_in
from shared.http.messages import Reply, json_reply
from shared.http.operation_docs import ETAG, TEXT_FORM, DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group
from shared.http.static_files import STRICT_POLICY, StaticFiles
from shared.http.unknown_names import UnknownNames
from shared.wiring import services

GROUP = Group("pages")
_STATIC = Path(__file__).parents[1] / "static"
_EXPLORER = StaticFiles(_STATIC / "explorer")
_GRAPHIQL = StaticFiles(_STATIC / "graphiql")


PAGE_DOCS = OperationDocs(
    (DocumentedReply(200, "The page.", forms={"text/html": TEXT_FORM}, headers=ETAG),), listed=False
)
FILE_DOCS = OperationDocs((DocumentedReply(200, "The file.", forms={"*/*": TEXT_FORM}, headers=ETAG),), listed=False)
MOVED_DOCS = OperationDocs((DocumentedReply(302, "Redirect to the page."),), listed=False)


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


@GROUP.endpoint("GET", "", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=MOVED_DOCS)
async def root(_: Call) -> Reply:
    """Redirect to the web console."""
    return Reply(302, b"", {"Location": "/console/"})


@GROUP.endpoint("GET", "console", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=MOVED_DOCS)
async def console_without_slash(_: Call) -> Reply:
    """Redirect to the web console's address with a trailing slash."""
    return Reply(308, b"", {"Location": "/console/"})


@GROUP.endpoint("GET", "console/", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=PAGE_DOCS)
async def console(call: Call) -> Reply:
    """Return the web console, which requests an API key or a token from the user."""
    return await _get_console_files().page(call.request)


@GROUP.endpoint(
    "GET", "console/config.json", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=CONSOLE_CONFIG_DOCS
)
async def console_config(_: Call) -> Reply:
    """Return the public sign-in settings of the web console."""
    sign_in = build_console_sign_in(services().settings)
    return json_reply({"entra": sign_in.to_json() if sign_in else None}, headers={"Cache-Control": "no-cache"})


@GROUP.endpoint("GET", "console/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=FILE_DOCS)
async def console_file(call: Call) -> Reply:
    """Return a file of the web console."""
    return await _get_console_files().file(call.request, call.path["file"])


@GROUP.endpoint("GET", "oi-api/explorer", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=PAGE_DOCS)
async def explorer(call: Call) -> Reply:
    """Return the API Explorer, which requests a token from the user."""
    return await _EXPLORER.page(call.request)


@GROUP.endpoint("GET", "oi-api/explorer/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=FILE_DOCS)
async def explorer_file(call: Call) -> Reply:
    """Return a file of the API Explorer."""
    return await _EXPLORER.file(call.request, call.path["file"])


@GROUP.endpoint("GET", "v1/{workspaceId}/graphiql", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=PAGE_DOCS)
async def graphiql(call: Call) -> Reply:
    """Return GraphiQL, which requests an API key or a token from the user."""
    return await _GRAPHIQL.page(call.request)


@GROUP.endpoint(
    "GET", "v1/{workspaceId}/graphiql/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=FILE_DOCS
)
async def graphiql_file(call: Call) -> Reply:
    """Return a file of GraphiQL."""
    return await _GRAPHIQL.file(call.request, f"graphiql/{call.path['file']}")


@cache
def _get_console_files() -> StaticFiles:
    """Return the web console's files, with a policy that allows calls to the live stream and Entra ID if configured."""
    settings = services().settings
    sign_in = build_console_sign_in(settings)
    allowed = (_build_websocket_origin(settings.web_pubsub_endpoint), sign_in.origin if sign_in else "")
    origins = "".join(f" {origin}" for origin in allowed if origin)
    return StaticFiles(_STATIC / "console", STRICT_POLICY.format(origins=origins))


def _build_websocket_origin(endpoint: str) -> str:
    """Return the WebSocket origin of an HTTP URL, empty if the URL has no host."""
    parts = urlsplit(endpoint)
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}" if parts.netloc else ""
