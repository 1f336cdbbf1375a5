"""Pages for people: public, static, and able to do no more than the token that is given to them."""

from pathlib import Path

from functions.replies import pages as replies
from shared.http.messages import Reply
from shared.http.operations import Access, Call, Group
from shared.http.static_files import StaticFiles

GROUP = Group("pages")
_STATIC = Path(__file__).parents[1] / "static"
_EXPLORER = StaticFiles(_STATIC / "explorer")
_GRAPHIQL = StaticFiles(_STATIC / "graphiql")


@GROUP.endpoint("GET", "oi-api/explorer", access=Access.PUBLIC, docs=replies.PAGE)
async def explorer(call: Call) -> Reply:
    """Show the API Explorer, which asks for a token."""
    return await _EXPLORER.page(call.request)


@GROUP.endpoint("GET", "oi-api/explorer/{*file}", access=Access.PUBLIC, docs=replies.FILE)
async def explorer_file(call: Call) -> Reply:
    """Return a file of the API Explorer."""
    return await _EXPLORER.file(call.request, call.path["file"])


@GROUP.endpoint("GET", "v1/{workspaceId}/graphiql", access=Access.PUBLIC, docs=replies.PAGE)
async def graphiql(call: Call) -> Reply:
    """Show GraphiQL, which asks for an API key or a token."""
    return await _GRAPHIQL.page(call.request)


@GROUP.endpoint("GET", "v1/{workspaceId}/graphiql/{*file}", access=Access.PUBLIC, docs=replies.FILE)
async def graphiql_file(call: Call) -> Reply:
    """Return a file of GraphiQL."""
    return await _GRAPHIQL.file(call.request, f"graphiql/{call.path['file']}")
