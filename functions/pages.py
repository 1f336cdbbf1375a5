"""Pages for people: public, static, and able to do no more than the token that is given to them."""

from pathlib import Path

from functions.replies import pages as replies
from shared.http.messages import Reply
from shared.http.operations import Access, Call, Group
from shared.http.static_files import StaticFiles

GROUP = Group("pages")
_STATIC = Path(__file__).parents[1] / "static"
_EXPLORER = StaticFiles(_STATIC / "explorer")


@GROUP.endpoint("GET", "oi-api/explorer", access=Access.PUBLIC, docs=replies.PAGE)
async def explorer(call: Call) -> Reply:
    """Show the API Explorer, which asks for a token."""
    return await _EXPLORER.page(call.request)


@GROUP.endpoint("GET", "oi-api/explorer/{*file}", access=Access.PUBLIC, docs=replies.FILE)
async def explorer_file(call: Call) -> Reply:
    """Return a file of the API Explorer."""
    return await _EXPLORER.file(call.request, call.path["file"])
