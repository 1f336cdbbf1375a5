"""Documentation of replies about surfaces."""

from datetime import datetime
from typing import Final, NotRequired, TypedDict

from functions.conditions import WRITE_CONDITIONS
from functions.replies.warm_queries import LOOKUP
from shared.http.operation_docs import DEFINITION, NO_CONTENT, DocumentedReply, OperationDocs


class SurfaceDefinition(TypedDict):
    """A surface with the lookups of its connections and queries.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    lookup: str
    name: str
    description: str | None
    connections: list[str]
    queries: list[str]
    createdAt: datetime
    updatedAt: datetime
    editedBy: str


class SurfaceList(TypedDict):
    """A page of surfaces; `cursor` is present if another page follows."""

    surfaces: list[SurfaceDefinition]
    cursor: NotRequired[str]


PATH: Final = {"lookup": LOOKUP}
_SENT: Final = {"name": "Cooling water", "description": "The cooling loop", "connections": ["pump-rig"]}
_SURFACE: Final = {
    **_SENT,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "lookup": "cooling",
    "queries": ["pressure-5m"],
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
    "editedBy": "admin@plant-a.example",
}

LISTED = OperationDocs((DocumentedReply(200, "The surfaces.", SurfaceList, {"surfaces": [_SURFACE]}),))
READ = OperationDocs(
    (DocumentedReply(200, "The surface.", SurfaceDefinition, _SURFACE, headers=DEFINITION),), path=PATH
)
PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed surface.", SurfaceDefinition, _SURFACE, headers=DEFINITION),
        DocumentedReply(201, "The new surface.", SurfaceDefinition, _SURFACE, headers=DEFINITION),
    ),
    error_statuses=(409, 412),
    example=_SENT,
    path=PATH,
    headers=WRITE_CONDITIONS,
)
DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), path=PATH, headers=WRITE_CONDITIONS)
