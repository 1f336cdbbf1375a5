/** Every access right of the service; docs/reference/api.md lists the rights of each operation. */
export const ACCESS_RIGHTS = [
  "Workspace.Catalog.Read",
  "Workspace.WarmQuery.Execute",
  "Workspace.WarmQuery.AdHoc",
  "Workspace.WarmQuery.Manage",
  "Workspace.WarmQuery.Approve",
  "Workspace.ColdData.Export",
  "Workspace.LiveStream.Read",
  "Workspace.Telemetry.Write",
  "Workspace.Telemetry.Import",
  "Workspace.Provenance.Read",
  "Workspace.Provenance.Write",
  "Workspace.Provenance.Verify",
  "Workspace.Provenance.Export",
  "Workspace.Amendment.Read",
  "Workspace.Amendment.Create",
  "Workspace.Amendment.Approve",
  "Workspace.DataStore.Read",
  "Workspace.DataStore.Manage",
  "Workspace.Document.Read",
  "Workspace.Document.Write",
  "Workspace.Mcp.Use",
  "Workspace.Keys.Manage",
  "Workspace.Team.Read",
  "Workspace.Team.Manage",
  "Workspace.Catalog.Manage",
  "Workspace.Policy.Manage",
  "Workspace.Alert.Read",
  "Workspace.Alert.Manage",
  "Workspace.Webhook.Manage",
] as const;

export type Right = (typeof ACCESS_RIGHTS)[number];

export const RIGHT_COUNT = ACCESS_RIGHTS.length;

/** Returns the rights that are not held. */
export function listMissingRights(held: readonly string[], wanted: readonly Right[]): Right[] {
  return wanted.filter((right) => !held.includes(right));
}

/** Tells whether all wanted rights are held. */
export function hasRights(held: readonly string[], wanted: readonly Right[]): boolean {
  return wanted.every((right) => held.includes(right));
}
