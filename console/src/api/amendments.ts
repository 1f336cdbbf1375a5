import { readBody } from "./body.ts";
import { type ApiReply, type Client, formatPath } from "./client.ts";
import { isPrefix } from "./provenance.ts";
import type { RecordedSignature, SignatureRequest } from "./signatures.ts";

/** An amendment, as it is stored. */
export interface Amendment {
  RecordID: string;
  ScopeKey: string;
  EntityType: string;
  EntityID: string;
  OriginalRecord: Record<string, unknown>;
  AmendedRecord: Record<string, unknown>;
  ChangedFields: string[];
  ReasonCategory: string;
  ReasonText: string;
  AmendedBy: string;
  AmendedAt: string;
  Status: "pending" | "approved";
  PreviousHash: string;
  Hash: string;
}

/** A decision on an amendment, as it is stored. */
export interface Transition {
  RecordID: string;
  ScopeKey: string;
  EntityType: string;
  EntityID: string;
  AmendmentID: string;
  Status: "approved" | "rejected";
  ApprovedBy?: string;
  ApprovedAt?: string;
  RejectedBy?: string;
  RejectedAt?: string;
  RejectionReason?: string;
  Meaning: "approval" | "rejection";
  Signature?: RecordedSignature;
  PreviousHash: string;
  Hash: string;
}

export function isTransition(record: Amendment | Transition): record is Transition {
  return "AmendmentID" in record;
}

/** An amendment to create, without the properties that the server sets. */
export type NewAmendment = Pick<
  Amendment,
  "EntityType" | "EntityID" | "OriginalRecord" | "AmendedRecord" | "ChangedFields" | "ReasonCategory" | "ReasonText"
>;

/** Either kind of record of a chain of amendments. */
export type AmendmentRecord = Amendment | Transition;

/** Filters of a query of amendments. */
export interface AmendmentFilters {
  status?: "pending" | "approved" | "rejected" | undefined;
  entityId?: string | undefined;
  entityType?: string | undefined;
  reasonCategory?: string | undefined;
  amendedBy?: string | undefined;
}

/** A page of amendments; `hasMore` is true if further ones match. */
export interface AmendmentPage {
  records: readonly AmendmentRecord[];
  hasMore: boolean;
}

const AMENDMENTS = "/oi-api/provenance/amendments";

/** Returns amendments and decisions of a scope, newest first; needs Workspace.Amendment.Read. */
export async function queryAmendments(
  api: Client,
  scopeKey: string,
  filters: AmendmentFilters & { toSequence?: number | undefined; limit: number },
  signal: AbortSignal,
): Promise<AmendmentPage> {
  const options = { query: { ...filters, scopeKey }, signal };
  return toPage(await api.request<AmendmentRecord[]>("GET", AMENDMENTS, undefined, options));
}

/** Returns the amendments of an entity, oldest first, at most 1,000; needs Workspace.Amendment.Read. */
export async function fetchEntityChain(
  api: Client,
  scopeKey: string,
  entityId: string,
  signal: AbortSignal,
): Promise<AmendmentPage> {
  const options = { query: { scopeKey, entityId }, signal };
  return toPage(await api.request<AmendmentRecord[]>("GET", `${AMENDMENTS}/chain`, undefined, options));
}

/** Returns the amendments of an entity as a printable HTML page. */
export async function fetchEntityReport(api: Client, scopeKey: string, entityId: string): Promise<Blob> {
  const options = { query: { scopeKey, entityId }, headers: { Accept: "text/html" } };
  const reply = await api.fetch("GET", `${AMENDMENTS}/chain`, undefined, options);
  return await readBody(reply, () => reply.blob());
}

/** Returns the permitted reason categories of amendments; needs Workspace.Amendment.Read. */
export async function fetchReasonCategories(api: Client, signal: AbortSignal): Promise<string[]> {
  const path = "/oi-api/provenance/reason-categories";
  return (await api.get<{ categories: string[] }>(path, { signal })).categories;
}

/** Appends an amendment; needs Workspace.Amendment.Create. A repeat with the same key appends nothing. */
export function createAmendment(api: Client, scopeKey: string, made: NewAmendment, key: string): Promise<Amendment> {
  return api.post<Amendment>(AMENDMENTS, { ...made, ScopeKey: scopeKey }, { headers: { "Idempotency-Key": key } });
}

/** Approves another person's amendment; needs Workspace.Amendment.Approve. */
export function approveAmendment(
  api: Client,
  scopeKey: string,
  id: string,
  key: string,
  signature?: SignatureRequest,
): Promise<Transition> {
  const options = { query: { scopeKey }, headers: { "Idempotency-Key": key } };
  return api.post<Transition>(formatPath`/oi-api/provenance/amendments/${id}/approve`, { signature }, options);
}

/** Rejects another person's amendment; needs Workspace.Amendment.Approve. */
export function rejectAmendment(
  api: Client,
  scopeKey: string,
  id: string,
  reason: string,
  key: string,
  signature?: SignatureRequest,
): Promise<Transition> {
  const body = { ScopeKey: scopeKey, RejectionReason: reason, signature };
  const options = { query: { scopeKey }, headers: { "Idempotency-Key": key } };
  return api.post<Transition>(formatPath`/oi-api/provenance/amendments/${id}/reject`, body, options);
}

function toPage({ data, headers }: ApiReply<AmendmentRecord[]>): AmendmentPage {
  return { records: data, hasMore: isPrefix(headers) };
}
