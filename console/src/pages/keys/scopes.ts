import type { Right } from "@/session/rights.ts";

/** What each right lets its holder do, in the order in which they are shown. */
const MEANINGS: Record<Right, string> = {
  "Workspace.Catalog.Read": "see connections, surfaces and queries",
  "Workspace.WarmQuery.Execute": "run approved queries",
  "Workspace.WarmQuery.AdHoc": "run queries of one's own",
  "Workspace.WarmQuery.Manage": "write and remove queries",
  "Workspace.WarmQuery.Approve": "approve what others wrote",
  "Workspace.Telemetry.Write": "send messages",
  "Workspace.LiveStream.Read": "follow messages as they come",
  "Workspace.ColdData.Export": "download the archive as files",
  "Workspace.Provenance.Read": "read audit records",
  "Workspace.Provenance.Write": "write audit records",
  "Workspace.Provenance.Verify": "verify whole chains",
  "Workspace.Provenance.Export": "export chains",
  "Workspace.Amendment.Read": "read amendments",
  "Workspace.Amendment.Create": "make amendments",
  "Workspace.Amendment.Approve": "decide amendments of others",
  "Workspace.DataStore.Read": "list containers",
  "Workspace.DataStore.Manage": "make and delete containers",
  "Workspace.Document.Read": "read documents",
  "Workspace.Document.Write": "write and delete documents",
  "Workspace.Mcp.Use": "connect agents by MCP",
  "Workspace.Keys.Manage": "make and revoke keys of everybody",
};

const AREAS: Record<string, string> = {
  Catalog: "Catalog",
  WarmQuery: "Warm queries",
  Telemetry: "Telemetry",
  LiveStream: "Live stream",
  ColdData: "Cold data",
  Provenance: "Audit log",
  Amendment: "Amendments",
  DataStore: "Data stores",
  Document: "Documents",
  Mcp: "MCP",
  Keys: "Keys",
};

/** Rights that belong together. */
export interface Area {
  id: string;
  title: string;
  rights: readonly Right[];
}

/** Whether all, some or none of the rights of a box are chosen. */
export type TickState = "true" | "mixed" | "false";

/** Every access right. */
export const RIGHTS = Object.keys(MEANINGS) as Right[];

/** Gives the areas in which somebody holds rights, each with the rights held. */
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

/** The last part of a right's name: what is done in its area. */
export function extractVerb(right: Right): string {
  return right.split(".")[2] ?? right;
}

export function computeTickState(rights: readonly Right[], chosen: ReadonlySet<Right>): TickState {
  const among = rights.filter((right) => chosen.has(right)).length;
  return among === rights.length ? "true" : among === 0 ? "false" : "mixed";
}

/** Gives the choice after a click on the box of some rights: all of them, or none where all were chosen. */
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
