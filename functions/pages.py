"""Pages for people: public, static, and able to do no more than the token that is given to them."""

from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from functions.replies import pages as replies
from shared.auth.console_sign_in import build_console_sign_in
from shared.http.messages import Reply, json_reply
from shared.http.operations import Access, Call, Group
from shared.http.static_files import STRICT_POLICY, StaticFiles
from shared.http.unknown_names import UnknownNames
from shared.wiring import services

GROUP = Group("pages")
_STATIC = Path(__file__).parents[1] / "static"
_EXPLORER = StaticFiles(_STATIC / "explorer")
_GRAPHIQL = StaticFiles(_STATIC / "graphiql")


@GROUP.endpoint("GET", "", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.MOVED)
async def root(_: Call) -> Reply:
    """Send people to the web console."""
    return Reply(302, b"", {"Location": "/console/"})


@GROUP.endpoint("GET", "console", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.MOVED)
async def console_without_slash(_: Call) -> Reply:
    """Send people to where the web console stands."""
    return Reply(308, b"", {"Location": "/console/"})


@GROUP.endpoint("GET", "console/", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.PAGE)
async def console(call: Call) -> Reply:
    """Show the web console, which asks for an API key or a token."""
    return await _console().page(call.request)


@GROUP.endpoint(
    "GET", "console/config.json", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.CONSOLE_CONFIG
)
async def console_config(_: Call) -> Reply:
    """Say where the web console may sign people in; all of it is public."""
    sign_in = build_console_sign_in(services().settings)
    return json_reply({"entra": sign_in.to_json() if sign_in else None}, headers={"Cache-Control": "no-cache"})


@GROUP.endpoint("GET", "console/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.FILE)
async def console_file(call: Call) -> Reply:
    """Return a file of the web console."""
    return await _console().file(call.request, call.path["file"])


@GROUP.endpoint("GET", "oi-api/explorer", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.PAGE)
async def explorer(call: Call) -> Reply:
    """Show the API Explorer, which asks for a token."""
    return await _EXPLORER.page(call.request)


@GROUP.endpoint("GET", "oi-api/explorer/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.FILE)
async def explorer_file(call: Call) -> Reply:
    """Return a file of the API Explorer."""
    return await _EXPLORER.file(call.request, call.path["file"])


@GROUP.endpoint(
    "GET", "v1/{workspaceId}/graphiql", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.PAGE
)
async def graphiql(call: Call) -> Reply:
    """Show GraphiQL, which asks for an API key or a token."""
    return await _GRAPHIQL.page(call.request)


@GROUP.endpoint(
    "GET", "v1/{workspaceId}/graphiql/{*file}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.FILE
)
async def graphiql_file(call: Call) -> Reply:
    """Return a file of GraphiQL."""
    return await _GRAPHIQL.file(call.request, f"graphiql/{call.path['file']}")


@cache
def _console() -> StaticFiles:
    """Return the web console's files; it may call the host of the live stream and Entra ID, where there are such."""
    settings = services().settings
    sign_in = build_console_sign_in(settings)
    called = (_socket(settings.web_pubsub_endpoint), sign_in.origin if sign_in else "")
    origins = "".join(f" {origin}" for origin in called if origin)
    return StaticFiles(_STATIC / "console", STRICT_POLICY.format(origins=origins))


def _socket(endpoint: str) -> str:
    """Return the origin of WebSockets at an address."""
    parts = urlsplit(endpoint)
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}" if parts.netloc else ""
