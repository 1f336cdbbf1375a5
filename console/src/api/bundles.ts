import type { BackgroundJob, JobFile } from "@/components/jobs.ts";
import { type ChainName, type Target, toChainQuery } from "@/proof/chains.ts";
import { type Client, formatPath } from "./client.ts";

/** Maximum number of chains in a bundle. */
export const MAX_CHAINS = 1000;

/** A bundle: one zip file with chains, checkpoints and proofs, which is verified without the service. */
export interface AuditBundle extends BackgroundJob {
  bundleId: string;
  scopes: { target: Target; scopeKey: string | null }[];
  filters: { startDate: string | null; endDate: string | null; entityId: string | null };
  progress: { scopesDone: number; scopesTotal: number; records: number };
  /**
   * The chains that the verification for the bundle found broken; chains of which filters exclude records are not
   * verified. An instance of the previous version does not send it.
   */
  brokenScopes?: { target: Target; scopeKey: string | null }[];
  files: (Omit<JobFile, "rows"> & { records: number })[];
}

/** Content of a new bundle; times are inclusive. */
export interface NewBundle {
  chains: readonly ChainName[];
  startDate?: string | undefined;
  endDate?: string | undefined;
  entityId?: string | undefined;
  /** Whether the bundle contains a receipt of each record. */
  receipts?: true | undefined;
}

const BUNDLES = "/oi-api/provenance/bundles";

/** Returns the caller's bundles, newest first; needs Workspace.Provenance.Export, as the other calls. */
export async function fetchBundles(api: Client, signal: AbortSignal): Promise<AuditBundle[]> {
  return (await api.get<{ bundles: AuditBundle[] }>(BUNDLES, { signal })).bundles;
}

export function fetchBundle(api: Client, id: string): Promise<AuditBundle> {
  return api.get<AuditBundle>(formatPath`/oi-api/provenance/bundles/${id}`);
}

/** Starts a bundle. A repeat with the same idempotency key returns the same bundle. */
export function startBundle(
  api: Client,
  { chains, ...filters }: NewBundle,
  idempotencyKey: string,
): Promise<AuditBundle> {
  const headers = { "Idempotency-Key": idempotencyKey };
  return api.post<AuditBundle>(BUNDLES, { scopes: chains.map(toChainQuery), ...filters }, { headers });
}

export function cancelBundle(api: Client, id: string): Promise<void> {
  return api.delete(formatPath`/oi-api/provenance/bundles/${id}`);
}
