import type { ChainName, Target } from "@/proof/chains.ts";
import type { Amendment } from "./amendments.ts";
import type { Client } from "./client.ts";

/** A chain of the audit log with its counts and its last verification; workspace targets have no scope. */
export interface AuditScope {
  target: Target;
  scopeKey: string | null;
  records: number;
  firstAt: string | null;
  lastAt: string | null;
  lastRecordID: string | null;
  checkpointSize: number;
  pendingAmendments: number;
  /** Null before the first verification. */
  lastVerifiedAt: string | null;
  lastVerdict: "valid" | "broken" | null;
}

/** A page of the list of chains; `cursor` is null on the last page. */
export interface AuditScopePage {
  scopes: readonly AuditScope[];
  cursor: string | null;
}

/** A page of pending amendments of all scopes, oldest first. A damaged record lacks properties. */
export interface PendingPage {
  amendments: readonly (Pick<Amendment, "RecordID" | "ScopeKey"> & Partial<Amendment>)[];
  cursor: string | null;
}

export interface PageChoice {
  limit: number;
  /** `cursor` of the previous page. */
  cursor?: string | undefined;
}

/** Maximum of `limit` in both lists. */
export const MAX_PAGE = 1000;

/** Restrictions on the list of chains. */
interface ScopeFilters {
  target?: Target | undefined;
  /** Only chains that the last verification found broken. */
  verdict?: "broken";
}

/** Returns chains by target and scope; needs Workspace.Provenance.Read. */
export function fetchAuditScopes(
  api: Client,
  choice: PageChoice & ScopeFilters,
  signal: AbortSignal,
): Promise<AuditScopePage> {
  return api.get<AuditScopePage>("/oi-api/provenance/scopes", { query: { ...choice }, signal });
}

/** Returns all chains, or those of a container; needs Workspace.Provenance.Read. */
export function fetchAllAuditScopes(api: Client, target: Target | undefined, signal: AbortSignal) {
  return fetchAllPages(api, { target }, signal);
}

/** Returns the chains that the last verification found broken, of all containers or of one; rights as above. */
export function fetchBrokenChains(api: Client, target: Target | undefined, signal: AbortSignal) {
  return fetchAllPages(api, { target, verdict: "broken" }, signal);
}

async function fetchAllPages(api: Client, filters: ScopeFilters, signal: AbortSignal): Promise<AuditScope[]> {
  const scopes: AuditScope[] = [];
  let cursor: string | undefined;
  do {
    const page = await fetchAuditScopes(api, { ...filters, limit: MAX_PAGE, cursor }, signal);
    scopes.push(...page.scopes);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return scopes;
}

/** Returns pending amendments of all scopes; needs Workspace.Amendment.Read. */
export function fetchPendingAmendments(api: Client, choice: PageChoice, signal: AbortSignal): Promise<PendingPage> {
  return api.get<PendingPage>("/oi-api/provenance/pending", { query: { ...choice }, signal });
}

export function toChainName({ target, scopeKey }: AuditScope): ChainName {
  return { target, scopeKey: scopeKey ?? "" };
}
