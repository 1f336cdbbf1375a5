import { readBody, readJson } from "./body.ts";
import type { Client } from "./client.ts";

/** A change of one item; `before` is null for a new item, `after` for a removed one. */
export interface PlannedChange {
  action: "added" | "changed" | "removed";
  kind: string;
  key: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  /** Last change of the stored item, for example through the API. */
  changedBy?: string;
  changedAt?: string;
}

/** An item that stays as it is, although the document declares something else. */
export interface KeptItem {
  kind: string;
  key: string;
  reason: string;
}

/** A note about a document that can be applied. */
export interface DocumentWarning {
  field: string;
  message: string;
  line?: number | null;
  column?: number | null;
}

/** The changes that applying a document makes. */
export interface Plan {
  changes: readonly PlannedChange[];
  kept: readonly KeptItem[];
  /** Value for If-Match, with its quotes. */
  planTag: string;
  warnings?: readonly DocumentWarning[];
}

const DOCUMENT = "/oi-api/workspace/document";
const YAML = "application/yaml";

/** Returns the workspace as YAML; needs Workspace.Catalog.Read and Workspace.Team.Read. */
export async function fetchDocument(api: Client, signal: AbortSignal): Promise<string> {
  const reply = await api.fetch("GET", DOCUMENT, undefined, { headers: { Accept: YAML }, signal });
  return await readBody(reply, () => reply.text());
}

/** Returns the changes that a document would make, and changes nothing; needs Workspace.Catalog.Manage. */
export async function planDocument(api: Client, text: string, signal: AbortSignal): Promise<Plan> {
  return await readJson<Plan>(await api.fetch("POST", `${DOCUMENT}/plan`, toBody(text), { signal }));
}

/** Applies exactly the plan with this tag; 412 if the workspace changed since. */
export async function applyDocument(api: Client, text: string, planTag: string): Promise<Plan> {
  return await readJson<Plan>(await api.fetch("PUT", DOCUMENT, toBody(text), { headers: { "If-Match": planTag } }));
}

/** A JSON document is valid YAML, too. */
function toBody(text: string): Blob {
  return new Blob([text], { type: YAML });
}
