"""Liveness and readiness probes."""

from typing import Literal, TypedDict

from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, json_reply
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group, authorization_header
from shared.http.unknown_names import UnknownNames
from shared.wiring import services

GROUP = Group("health")


class Alive(TypedDict):
    """Reply of the liveness probe."""

    status: Literal["alive"]


class Ready(TypedDict):
    """Reply of the readiness probe."""

    status: Literal["ready"]


ALIVE_DOCS = OperationDocs((DocumentedReply(200, "The process runs.", Alive, {"status": "alive"}),))
READY_DOCS = OperationDocs(
    (DocumentedReply(200, "The stores and the query engine respond.", Ready, {"status": "ready"}),),
    error_statuses=(503,),
)


@GROUP.endpoint("GET", "healthz", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=ALIVE_DOCS)
async def alive(_: Call) -> Reply:
    """Return 200 if the process runs."""
    return json_reply({"status": "alive"})


@GROUP.endpoint("GET", "readyz", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=READY_DOCS)
async def ready(call: Call) -> Reply:
    """Return 200 if the stores and the query engine respond, else 503.

    The 503 lists the failing dependencies if the caller has the right to read the catalog.
    """
    failing = await services().readiness.find_failing()
    if failing:
        details = {"failing": failing} if await _can_read_catalog(call) else {}
        raise WorkspaceError(Kind.UNAVAILABLE, "NOT_READY", "A store or the query engine does not respond.", **details)
    return json_reply({"status": "ready"})


async def _can_read_catalog(call: Call) -> bool:
    """Return whether the caller has the right to read the catalog; False if the credential cannot be checked now."""
    try:
        caller = await services().access.authenticator(authorization_header(call.request), Access.KEY_OR_TOKEN.value)
    except WorkspaceError:
        return False
    return AccessRight.CATALOG_READ in caller.rights
