"""Replies of liveness and readiness."""

from typing import Literal, TypedDict

from shared.http.operation_docs import DocumentedReply, OperationDocs


class Alive(TypedDict):
    """The process runs."""

    status: Literal["alive"]


class Ready(TypedDict):
    """The stores and the query engine answer."""

    status: Literal["ready"]


ALIVE = OperationDocs((DocumentedReply(200, "The process runs.", Alive, {"status": "alive"}),))
READY = OperationDocs(
    (DocumentedReply(200, "Stores and query engine answer.", Ready, {"status": "ready"}),), refusals=(503,)
)
