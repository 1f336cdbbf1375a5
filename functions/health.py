"""Alive and ready."""

import asyncio

from functions.replies import health as replies
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, json_reply
from shared.http.operations import Access, Call, Group
from shared.wiring import services

GROUP = Group("health")
READY_SECONDS = 5


@GROUP.endpoint("GET", "healthz", access=Access.PUBLIC, docs=replies.ALIVE)
async def alive(_: Call) -> Reply:
    """Answer while the process runs."""
    return json_reply({"status": "alive"})


@GROUP.endpoint("GET", "readyz", access=Access.PUBLIC, docs=replies.READY)
async def ready(_: Call) -> Reply:
    """Answer while the stores and the query engine do, too."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await services().check()
    except Exception as error:
        raise WorkspaceError(Kind.UNAVAILABLE, "NOT_READY", "A store does not answer.") from error
    return json_reply({"status": "ready"})
