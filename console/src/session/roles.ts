import { ACCESS_RIGHTS, type Right } from "./rights.ts";

/** A named set of rights. */
export type Role = "Viewer" | "Editor" | "Admin";

const VIEWER: readonly Right[] = [
  ...ACCESS_RIGHTS.filter((right) => right.endsWith(".Read")),
  "Workspace.WarmQuery.Execute",
  "Workspace.Provenance.Verify",
  "Workspace.Mcp.Use",
];

const EDITOR: readonly Right[] = [
  ...VIEWER,
  "Workspace.WarmQuery.AdHoc",
  "Workspace.WarmQuery.Manage",
  "Workspace.Telemetry.Write",
  "Workspace.Telemetry.Import",
  "Workspace.ColdData.Export",
  "Workspace.Provenance.Write",
  "Workspace.Provenance.Export",
  "Workspace.Amendment.Create",
  "Workspace.Document.Write",
  "Workspace.Alert.Manage",
];

/** The rights of each role; the service has the same table in `shared/auth/rights.py`. */
export const ROLE_RIGHTS: Record<Role, readonly Right[]> = { Viewer: VIEWER, Editor: EDITOR, Admin: ACCESS_RIGHTS };

export const ROLES = Object.keys(ROLE_RIGHTS) as Role[];
