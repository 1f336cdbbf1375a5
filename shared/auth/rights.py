"""Access rights, and the roles, which are named sets of access rights."""

from collections.abc import Iterable
from enum import StrEnum


class AccessRight(StrEnum):
    """Access right that an operation of the API can require."""

    CATALOG_READ = "Workspace.Catalog.Read"
    WARM_QUERY_EXECUTE = "Workspace.WarmQuery.Execute"
    WARM_QUERY_AD_HOC = "Workspace.WarmQuery.AdHoc"
    WARM_QUERY_MANAGE = "Workspace.WarmQuery.Manage"
    WARM_QUERY_APPROVE = "Workspace.WarmQuery.Approve"
    COLD_DATA_EXPORT = "Workspace.ColdData.Export"
    LIVE_STREAM_READ = "Workspace.LiveStream.Read"
    TELEMETRY_WRITE = "Workspace.Telemetry.Write"
    TELEMETRY_IMPORT = "Workspace.Telemetry.Import"
    PROVENANCE_READ = "Workspace.Provenance.Read"
    PROVENANCE_WRITE = "Workspace.Provenance.Write"
    PROVENANCE_VERIFY = "Workspace.Provenance.Verify"
    PROVENANCE_EXPORT = "Workspace.Provenance.Export"
    AMENDMENT_READ = "Workspace.Amendment.Read"
    AMENDMENT_CREATE = "Workspace.Amendment.Create"
    AMENDMENT_APPROVE = "Workspace.Amendment.Approve"
    DATA_STORE_READ = "Workspace.DataStore.Read"
    DATA_STORE_MANAGE = "Workspace.DataStore.Manage"
    DOCUMENT_READ = "Workspace.Document.Read"
    DOCUMENT_WRITE = "Workspace.Document.Write"
    MCP_USE = "Workspace.Mcp.Use"
    KEYS_MANAGE = "Workspace.Keys.Manage"
    TEAM_READ = "Workspace.Team.Read"
    TEAM_MANAGE = "Workspace.Team.Manage"
    CATALOG_MANAGE = "Workspace.Catalog.Manage"
    POLICY_MANAGE = "Workspace.Policy.Manage"
    ALERT_READ = "Workspace.Alert.Read"
    ALERT_MANAGE = "Workspace.Alert.Manage"
    WEBHOOK_MANAGE = "Workspace.Webhook.Manage"


class Role(StrEnum):
    """Role of a team member: a named set of access rights, to which individual rights can be added."""

    VIEWER = "Viewer"
    EDITOR = "Editor"
    ADMIN = "Admin"


_VIEWER = frozenset(right for right in AccessRight if right.endswith(".Read")) | {
    AccessRight.WARM_QUERY_EXECUTE,
    AccessRight.PROVENANCE_VERIFY,
    AccessRight.MCP_USE,
}
_EDITOR = _VIEWER | {
    AccessRight.WARM_QUERY_AD_HOC,
    AccessRight.PROVENANCE_WRITE,
    AccessRight.DOCUMENT_WRITE,
    AccessRight.AMENDMENT_CREATE,
    AccessRight.COLD_DATA_EXPORT,
    AccessRight.PROVENANCE_EXPORT,
    AccessRight.WARM_QUERY_MANAGE,
    AccessRight.TELEMETRY_WRITE,
    AccessRight.TELEMETRY_IMPORT,
    AccessRight.ALERT_MANAGE,
}

ROLE_RIGHTS: dict[Role, frozenset[AccessRight]] = {
    Role.VIEWER: _VIEWER,
    Role.EDITOR: _EDITOR,
    Role.ADMIN: frozenset(AccessRight),
}


def select_known_rights(names: Iterable[str]) -> frozenset[AccessRight]:
    """Convert the stored names of access rights, and leave out names that this version does not know.

    A newer version of the service possibly stored the unknown names. They must not make the stored credentials
    unreadable for this version.
    """
    return frozenset(AccessRight(name) for name in names if name in AccessRight)
