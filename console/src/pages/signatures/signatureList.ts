// The list of signatures: its request, and the filters in its address.
import { type Client, formatPath } from "@/api/client.ts";
import type { RecordedSignature } from "@/api/signatures.ts";
import { isTarget } from "@/proof/chains.ts";
import { parseRecordId } from "@/proof/record.ts";
import { buildHref, type Route } from "@/router/route.ts";

/** A signature with the record of its decision; `scopeKey` is null for a decision about a query. */
export interface ListedSignature extends RecordedSignature {
  target: string;
  scopeKey: string | null;
  recordID: string;
}

/** Filters of the list; empty properties do not filter. */
export interface SignatureFilters {
  userId: string;
  /** Earliest time, RFC 3339. */
  from: string;
  /** Latest time, not included, RFC 3339. */
  to: string;
}

export const PAGE = 100;

/** Returns a page of signatures, newest first; needs Workspace.Provenance.Read. */
export function fetchSignatures(
  api: Client,
  { userId, from, to }: SignatureFilters,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<{ signatures: ListedSignature[]; cursor: string | null }> {
  const filters = { ...(userId && { userId }), ...(from && { from }), ...(to && { to }) };
  return api.get(formatPath`/oi-api/provenance/signatures`, { query: { ...filters, limit: PAGE, cursor }, signal });
}

/** Parses the filters of an address. */
export function parseFilters({ query }: Route): SignatureFilters {
  return { userId: query.get("who") ?? "", from: query.get("from") ?? "", to: query.get("to") ?? "" };
}

/** Returns the address of the list with these filters. */
export function buildListAddress({ userId, from, to }: SignatureFilters): string {
  return buildHref("signatures", [], { who: userId, from, to });
}

/** Returns the address of a signature's record in the audit log; undefined for an unknown container. */
export function buildSignedAddress({ target, scopeKey, recordID }: ListedSignature): string | undefined {
  const record = parseRecordId(recordID);
  if (!isTarget(target) || record === null) {
    return undefined;
  }
  return buildHref("audit", scopeKey === null ? [target] : [target, scopeKey], { record });
}

/** Returns what was signed, in words: the amendment of a scope, or a query. */
export function describeSubject({ scopeKey }: ListedSignature): string {
  return scopeKey === null ? "query" : `amendment of ${scopeKey}`;
}
