import type { Client } from "./client.ts";
import type { StoredItem } from "./items.ts";
import type { SignaturePolicy } from "./signatures.ts";

/** Rules of the audit log. */
export interface ProvenancePolicy {
  requireApproval: boolean;
  requireTwoPersonAuth: boolean;
  requireReasonText: boolean;
  reasonCategories: string[];
}

/** Limits of each principal; null means the default of the tier. */
export interface Quotas {
  streamsPerPrincipal: number | null;
  jobsPerPrincipal: number | null;
  downloadBytes: number | null;
}

/** The workspace with its policies; tier and limits are read-only. */
export interface WorkspaceItem extends StoredItem {
  id: string;
  name: string;
  description: string | null;
  tier: "free" | "pro" | "enterprise";
  limits: { requestsPerMinute: number; concurrent: number };
  /** Without `provenance` the workspace has no audit log. */
  policies: { provenance: ProvenancePolicy | null; quotas: Quotas; signatures: SignaturePolicy };
  stats: { connectionCount: number; surfaceCount: number; queryCount: number; memberCount: number };
}

export const WORKSPACE_PATH = "/oi-api/workspace";

/** Returns the workspace; needs Workspace.Catalog.Read. */
export function fetchWorkspaceItem(api: Client, signal?: AbortSignal): Promise<WorkspaceItem> {
  return api.get<WorkspaceItem>(WORKSPACE_PATH, signal ? { signal } : {});
}
