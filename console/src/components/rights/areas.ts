import type { Right } from "@/session/rights.ts";

/** Description of each right, in display order. */
const MEANINGS: Record<Right, string> = {
  "Workspace.Catalog.Read": "see connections, surfaces and queries",
  "Workspace.Catalog.Manage": "change connections and surfaces",
  "Workspace.Policy.Manage": "change the workspace's policies",
  "Workspace.WarmQuery.Execute": "run approved queries",
  "Workspace.WarmQuery.AdHoc": "run ad-hoc queries",
  "Workspace.WarmQuery.Manage": "write and remove queries",
  "Workspace.WarmQuery.Approve": "approve queries of others",
  "Workspace.Telemetry.Write": "send messages",
  "Workspace.Telemetry.Import": "import files of past telemetry",
  "Workspace.LiveStream.Read": "receive live messages",
  "Workspace.ColdData.Export": "download the archive as files",
  "Workspace.Provenance.Read": "read audit records",
  "Workspace.Provenance.Write": "write audit records",
  "Workspace.Provenance.Verify": "verify whole chains",
  "Workspace.Provenance.Export": "export chains",
  "Workspace.Amendment.Read": "read amendments",
  "Workspace.Amendment.Create": "create amendments",
  "Workspace.Amendment.Approve": "approve or reject amendments of others",
  "Workspace.Alert.Read": "see alerts and their rules",
  "Workspace.Alert.Manage": "change alert rules and acknowledge alerts",
  "Workspace.Webhook.Manage": "manage webhooks",
  "Workspace.DataStore.Read": "see data stores and containers",
  "Workspace.DataStore.Manage": "create containers and publish them as tables",
  "Workspace.Document.Read": "read documents",
  "Workspace.Document.Write": "write and delete documents",
  "Workspace.Mcp.Use": "connect AI assistants (MCP)",
  "Workspace.Team.Read": "see the members of the team",
  "Workspace.Team.Manage": "add, change and remove members",
  "Workspace.Keys.Manage": "create and revoke the keys of all members",
};

const AREAS: Record<string, string> = {
  Catalog: "Catalog",
  Policy: "Policies",
  WarmQuery: "Warm queries",
  Telemetry: "Telemetry",
  LiveStream: "Live stream",
  ColdData: "Cold data",
  Provenance: "Audit log",
  Amendment: "Amendments",
  Alert: "Alerts",
  Webhook: "Webhooks",
  DataStore: "Data stores",
  Document: "Documents",
  Mcp: "MCP",
  Team: "Team",
  Keys: "Keys",
};

/** A group of rights. */
export interface Area {
  id: string;
  title: string;
  rights: readonly Right[];
}

/** State of a checkbox: all, some or none of its rights are selected. */
export type TickState = "true" | "mixed" | "false";

/** Every access right. */
export const RIGHTS = Object.keys(MEANINGS) as Right[];

/** Groups the caller's rights by area, without empty areas. */
export function groupByArea(held: readonly Right[]): readonly Area[] {
  return Object.entries(AREAS)
    .map(([id, title]) => ({
      id,
      title,
      rights: RIGHTS.filter((right) => extractArea(right) === id && held.includes(right)),
    }))
    .filter((area) => area.rights.length > 0);
}

export function describeRight(right: Right): string {
  return MEANINGS[right];
}

/** Returns the last part of a right's name: the action in its area. */
export function extractVerb(right: Right): string {
  return right.split(".")[2] ?? right;
}

export function computeTickState(rights: readonly Right[], chosen: ReadonlySet<Right>): TickState {
  const among = rights.filter((right) => chosen.has(right)).length;
  return among === rights.length ? "true" : among === 0 ? "false" : "mixed";
}

/** Returns the choice after a click on a checkbox: selects all of its rights, or none if all were selected. */
export function toggleRights(rights: readonly Right[], chosen: ReadonlySet<Right>): ReadonlySet<Right> {
  const next = new Set(chosen);
  const all = computeTickState(rights, chosen) === "true";
  for (const right of rights) {
    if (all) {
      next.delete(right);
    } else {
      next.add(right);
    }
  }
  return next;
}

function extractArea(right: Right): string {
  return right.split(".")[1] ?? "";
}
