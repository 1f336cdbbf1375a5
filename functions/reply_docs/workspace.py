"""Documentation of the replies of the handler modules `workspace` and `team`."""

from datetime import datetime
from typing import Any, Final, NotRequired, TypedDict

from functions.conditions import CHANGE_CONDITIONS, WRITE_CONDITIONS
from shared.auth.rights import AccessRight, Role
from shared.catalog.models import Tier
from shared.http.operation_docs import DEFINITION, NO_CONTENT, DocumentedReply, OperationDocs


class RequestLimits(TypedDict):
    """Rate limits of each principal."""

    requestsPerMinute: int
    concurrent: int


class WorkspaceStatistics(TypedDict):
    """Number of the workspace's items of each kind."""

    connectionCount: int
    surfaceCount: int
    queryCount: int
    memberCount: int


class WorkspaceDescription(TypedDict):
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
_SENT_WORKSPACE: Final = {
    "name": "Plant A",
    "description": "Cooling water and packaging",
    "policies": {"provenance": _PROVENANCE, "quotas": {"streamsPerPrincipal": 10}},
}
_WORKSPACE: Final = {
    **_SENT_WORKSPACE,
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

WORKSPACE_READ = OperationDocs(
    (DocumentedReply(200, "The workspace.", WorkspaceDescription, _WORKSPACE, headers=DEFINITION),)
)
WORKSPACE_PUT = OperationDocs(
    (DocumentedReply(200, "The changed workspace.", WorkspaceDescription, _WORKSPACE, headers=DEFINITION),),
    error_statuses=(409, 412),
    example=_SENT_WORKSPACE,
    headers=CHANGE_CONDITIONS,
)


class MemberDefinition(TypedDict):
    """A member of the team. `accessRights` are those of the role and the member's own `rights`.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    id: str
    name: str
    role: Role
    rights: list[AccessRight]
    enabled: bool
    service: bool
    oid: str | None
    accessRights: list[AccessRight]
    editedBy: str
    updatedAt: datetime


class MemberList(TypedDict):
    """A page of members; `cursor` is present if another page follows."""

    members: list[MemberDefinition]
    cursor: NotRequired[str]


MEMBER_PATH: Final = {"id": {"maxLength": 256}}
_SENT_MEMBER: Final = {"name": "Auditor", "role": "Viewer", "rights": ["Workspace.Provenance.Export"]}
_MEMBER: Final = {
    **_SENT_MEMBER,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "id": "auditor@plant-a.example",
    "enabled": True,
    "service": False,
    "oid": None,
    "accessRights": ["Workspace.Catalog.Read", "Workspace.Provenance.Export"],
    "editedBy": "admin@plant-a.example",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
}

MEMBERS_LISTED = OperationDocs((DocumentedReply(200, "The members.", MemberList, {"members": [_MEMBER]}),))
MEMBER_READ = OperationDocs(
    (DocumentedReply(200, "The member.", MemberDefinition, _MEMBER, headers=DEFINITION),), path=MEMBER_PATH
)
MEMBER_PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed member.", MemberDefinition, _MEMBER, headers=DEFINITION),
        DocumentedReply(201, "The new member.", MemberDefinition, _MEMBER, headers=DEFINITION),
    ),
    error_statuses=(409, 412),
    example=_SENT_MEMBER,
    path=MEMBER_PATH,
    headers=WRITE_CONDITIONS,
)
MEMBER_DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), path=MEMBER_PATH, headers=CHANGE_CONDITIONS)
