"""Alive and ready."""

from functions.replies import health as replies
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, json_reply
from shared.http.operations import Access, Call, Group, authorization_header
from shared.http.unknown_names import UnknownNames
from shared.wiring import services

GROUP = Group("health")


@GROUP.endpoint("GET", "healthz", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.ALIVE)
async def alive(_: Call) -> Reply:
    """Answer while the process runs."""
    return json_reply({"status": "alive"})


@GROUP.endpoint("GET", "readyz", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.READY)
async def ready(call: Call) -> Reply:
    """Answer while the stores and the query engine do, too; else tell readers of the catalog which do not."""
    failing = await services().readiness.failing()
    if failing:
        named = {"failing": failing} if await _may_know(call) else {}
        raise WorkspaceError(Kind.UNAVAILABLE, "NOT_READY", "A store does not answer.", **named)
    return json_reply({"status": "ready"})


async def _may_know(call: Call) -> bool:
    """Return whether the caller gave a credential that allows it; one that cannot be looked at now allows nothing."""
    try:
        caller = await services().authenticator(authorization_header(call.request), Access.KEY_OR_TOKEN.value)
    except WorkspaceError:
        return False
    return AccessRight.CATALOG_READ in caller.rights
