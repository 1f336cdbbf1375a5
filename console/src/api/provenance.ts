import { type ChainName, toChainQuery } from "@/proof/chains.ts";
import { NoteError } from "@/proof/notes.ts";
import type { JsonObject } from "@/proof/record.ts";
import type { Sources } from "@/proof/recordProof.ts";
import { readBody } from "./body.ts";
import type { Client } from "./client.ts";
import { ApiError } from "./problem.ts";

/** A stored audit event. */
export interface AuditEvent {
  RecordID: string;
  Timestamp: string;
  UserID: string;
  ActionType: string;
  EntityType: string;
  EntityID: string;
  NodeID?: string;
  BeforeState?: Record<string, unknown>;
  AfterState?: Record<string, unknown>;
  Name?: string;
  Description?: string;
  PreviousHash: string;
  Hash: string;
}

/** An audit event to write, without the properties that the server sets. */
export type NewEvent = Pick<AuditEvent, "ActionType" | "EntityType" | "EntityID"> &
  Partial<Pick<AuditEvent, "NodeID" | "BeforeState" | "AfterState" | "Name" | "Description">>;

/** Result of a verification. */
export interface Verdict {
  Valid: boolean | null;
  ChainValid: boolean;
  Empty: boolean;
  Record: Record<string, unknown> | null;
  RecomputedHash: string | null;
  BrokenAt: string | null;
  ForkDetected: boolean;
  Reason: string | null;
  Target: string;
}

/** The newest signed checkpoint of a chain. */
export interface SignedCheckpoint {
  origin: string;
  size: number;
  rootHash: string;
  lastHash: string;
  timestamp: string;
  signedNote: string;
}

/** Filters of a query of records. */
export interface Filters {
  actionType?: string | undefined;
  entityType?: string | undefined;
  userId?: string | undefined;
  /** ISO 8601, both inclusive. */
  startDate?: string | undefined;
  endDate?: string | undefined;
}

/** A query within a window of sequences, both ends inclusive. */
export interface Window extends Filters {
  fromSequence?: number | undefined;
  toSequence?: number | undefined;
  limit: number;
}

/** A page of records. */
export interface RecordPage {
  records: readonly JsonObject[];
  /** True if the same filters and window match further records. */
  hasMore: boolean;
}

const EVENTS = "/oi-api/provenance/events";

/**
 * Returns records of a chain, newest first; needs Workspace.Provenance.Read.
 * @throws ApiError also if the service ignored a filter
 */
export async function queryRecords(
  api: Client,
  chain: ChainName,
  window: Window,
  signal: AbortSignal,
): Promise<RecordPage> {
  const query = { ...window, ...toChainQuery(chain) };
  const answer = await api.request<JsonObject[]>("GET", `${EVENTS}/query`, undefined, { query, signal });
  const error = findIgnoredFilters(answer);
  if (error) {
    throw error;
  }
  return { records: answer.data, hasMore: isPrefix(answer.headers) };
}

/** Verifies a chain from its first record to its last; needs Workspace.Provenance.Verify. */
export function verifyChain(api: Client, chain: ChainName, signal: AbortSignal, recordId?: string): Promise<Verdict> {
  const { target, scopeKey } = toChainQuery(chain);
  const body = { ...(scopeKey ? { ScopeKey: scopeKey } : {}), ...(recordId ? { RecordID: recordId } : {}) };
  return api.post<Verdict>(`${EVENTS}/verify`, body, { query: { target }, signal });
}

/** Appends an event; needs Workspace.Provenance.Write. A repeat with the same key appends nothing. */
export function writeEvent(api: Client, chain: ChainName, event: NewEvent, key: string): Promise<AuditEvent> {
  const { target, scopeKey } = toChainQuery(chain);
  const body = { ...event, ...(scopeKey ? { ScopeKey: scopeKey } : {}) };
  return api.post<AuditEvent>(EVENTS, body, { query: { target }, headers: { "Idempotency-Key": key } });
}

/**
 * Returns an export as a stream, oldest first; needs Workspace.Provenance.Export.
 * @throws ApiError also if the service ignored a filter
 */
export async function exportRecords(
  api: Client,
  chain: ChainName,
  asked: Filters & { format: "json" | "csv"; limit: number },
  signal: AbortSignal,
): Promise<Response> {
  const query = { ...asked, ...toChainQuery(chain) };
  const reply = await api.fetch("GET", `${EVENTS}/export`, undefined, { query, signal });
  const error = findIgnoredFilters(reply);
  if (error) {
    await reply.body?.cancel();
    throw error;
  }
  return reply;
}

/** Returns an error if a reply ignores filters, such as invalid dates, and so contains records that do not match. */
function findIgnoredFilters({ status, headers }: { status: number; headers: Headers }): ApiError | undefined {
  const ignored = headers.get("x-provenance-ignored");
  if (ignored === null) {
    return undefined;
  }
  const detail = `These filters are not valid: ${ignored}. Enter other values, or clear the filters.`;
  return new ApiError({ status, code: "FILTER_IGNORED", detail, requestId: headers.get("x-request-id") ?? "" });
}

/** Tells whether an export contains only the first of the matching records. */
export function isPrefix(headers: Headers): boolean {
  return headers.get("x-provenance-has-more") === "true";
}

/** Maximum number of damaged records that the service names for an export. */
export const MOST_DAMAGED = 100;

/** Returns the RecordIDs of damaged records of an export, at most `MOST_DAMAGED`. */
export function listDamagedRecords(headers: Headers): string[] {
  return headers.get("x-provenance-damaged")?.split(", ") ?? [];
}

/** Returns the newest checkpoint of a chain, null if none was signed yet; needs Workspace.Provenance.Read. */
export async function fetchNewestCheckpoint(
  api: Client,
  chain: ChainName,
  signal: AbortSignal,
): Promise<SignedCheckpoint | null> {
  try {
    return await api.get<SignedCheckpoint>("/oi-api/provenance/checkpoint", { query: toChainQuery(chain), signal });
  } catch (error) {
    if (error instanceof ApiError && error.code === "CHECKPOINT_NOT_FOUND") {
      return null;
    }
    throw error;
  }
}

/** Creates the sources of a record's proof from the service's routes. */
export function createProofSources(api: Client, chain: ChainName, signal: AbortSignal): Sources {
  const prove = (query: Record<string, number>) =>
    nullIfInvalid(async () => {
      const options = { query: { ...query, ...toChainQuery(chain) }, signal };
      return (await api.get<{ hashes: string[] }>("/oi-api/provenance/proof", options)).hashes;
    });
  return {
    key: async () => {
      const reply = await api.fetch("GET", "/.well-known/oi-checkpoint-key", undefined, { signal });
      return await readBody(reply, () => reply.text());
    },
    keySet: () => api.get<unknown>("/.well-known/oi-checkpoint-key", { query: { format: "jwks" }, signal }),
    note: () => fetchNote(api, chain, signal),
    inclusion: (sequence, size) => prove({ sequence, size }),
    growth: (from, size) => prove({ from, size }),
  };
}

async function fetchNote(api: Client, chain: ChainName, signal: AbortSignal): Promise<string | null> {
  try {
    return (await fetchNewestCheckpoint(api, chain, signal))?.signedNote ?? null;
  } catch (error) {
    throw error instanceof ApiError && error.code === "CHECKPOINT_REFUSED" ? new NoteError(error.detail) : error;
  }
}

async function nullIfInvalid<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) {
      return null;
    }
    throw error;
  }
}
