"""Documentation of replies about members of the team."""

from datetime import datetime
from typing import Final, NotRequired, TypedDict

from functions.conditions import WRITE_CONDITIONS
from shared.auth.rights import AccessRight, Role
from shared.http.operation_docs import DEFINITION, NO_CONTENT, DocumentedReply, OperationDocs


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


PATH: Final = {"id": {"maxLength": 256}}
_SENT: Final = {"name": "Auditor", "role": "Viewer", "rights": ["Workspace.Provenance.Export"]}
_MEMBER: Final = {
    **_SENT,
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "id": "auditor@plant-a.example",
    "enabled": True,
    "service": False,
    "oid": None,
    "accessRights": ["Workspace.Catalog.Read", "Workspace.Provenance.Export"],
    "editedBy": "admin@plant-a.example",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
}

LISTED = OperationDocs((DocumentedReply(200, "The members.", MemberList, {"members": [_MEMBER]}),))
READ = OperationDocs((DocumentedReply(200, "The member.", MemberDefinition, _MEMBER, headers=DEFINITION),), path=PATH)
PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed member.", MemberDefinition, _MEMBER, headers=DEFINITION),
        DocumentedReply(201, "The new member.", MemberDefinition, _MEMBER, headers=DEFINITION),
    ),
    error_statuses=(409, 412),
    example=_SENT,
    path=PATH,
    headers=WRITE_CONDITIONS,
)
DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), path=PATH, headers=WRITE_CONDITIONS)
