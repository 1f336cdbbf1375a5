/** Every access right of the service; docs/reference.md lists the rights of each operation. */
export type Right =
  | "Workspace.Catalog.Read"
  | "Workspace.WarmQuery.Execute"
  | "Workspace.WarmQuery.AdHoc"
  | "Workspace.WarmQuery.Manage"
  | "Workspace.WarmQuery.Approve"
  | "Workspace.ColdData.Export"
  | "Workspace.LiveStream.Read"
  | "Workspace.Telemetry.Write"
  | "Workspace.Provenance.Read"
  | "Workspace.Provenance.Write"
  | "Workspace.Provenance.Verify"
  | "Workspace.Provenance.Export"
  | "Workspace.Amendment.Read"
  | "Workspace.Amendment.Create"
  | "Workspace.Amendment.Approve"
  | "Workspace.DataStore.Read"
  | "Workspace.DataStore.Manage"
  | "Workspace.Document.Read"
  | "Workspace.Document.Write"
  | "Workspace.Mcp.Use"
  | "Workspace.Keys.Manage";

/** Tells whether all wanted rights are held. */
export function hasRights(held: readonly string[], wanted: readonly Right[]): boolean {
  return wanted.every((right) => held.includes(right));
}
