"""Documentation of replies about the workspace."""

from typing import Any, Final, TypedDict

from functions.conditions import WRITE_CONDITIONS
from shared.catalog.models import Tier
from shared.http.operation_docs import DEFINITION, DocumentedReply, OperationDocs


class RequestLimits(TypedDict):
    """Rate limits of each principal."""

    requestsPerMinute: int
    concurrent: int


class WorkspaceStatistics(TypedDict):
    """Numbers of the workspace's items."""

    connectionCount: int
    surfaceCount: int
    queryCount: int
    memberCount: int


class WorkspaceShown(TypedDict):
    """The workspace. `version` grows with each change of the catalog.

    `etag` is the value for If-Match, including the quotes; it identifies name, description and policies.
    """

    etag: str
    id: str
    name: str
    description: str | None
    tier: Tier
    limits: RequestLimits
    policies: dict[str, Any]
    stats: WorkspaceStatistics
    version: int


_PROVENANCE: Final = {
    "requireApproval": True,
    "requireTwoPersonAuth": False,
    "requireReasonText": False,
    "reasonCategories": ["sensor-drift", "other"],
}
_SENT: Final = {
    "name": "Plant A",
    "description": "Cooling water and packaging",
    "policies": {"provenance": _PROVENANCE, "quotas": {"streamsPerPrincipal": 10}},
}
_WORKSPACE: Final = {
    **_SENT,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "id": "plant-a",
    "tier": "pro",
    "limits": {"requestsPerMinute": 600, "concurrent": 20},
    "policies": {
        "provenance": _PROVENANCE,
        "quotas": {"streamsPerPrincipal": 10, "jobsPerPrincipal": None, "downloadBytes": None},
    },
    "stats": {"connectionCount": 2, "surfaceCount": 1, "queryCount": 1, "memberCount": 4},
    "version": 7,
}

READ = OperationDocs((DocumentedReply(200, "The workspace.", WorkspaceShown, _WORKSPACE, headers=DEFINITION),))
PUT = OperationDocs(
    (DocumentedReply(200, "The changed workspace.", WorkspaceShown, _WORKSPACE, headers=DEFINITION),),
    error_statuses=(409, 412),
    example=_SENT,
    headers=WRITE_CONDITIONS,
)
