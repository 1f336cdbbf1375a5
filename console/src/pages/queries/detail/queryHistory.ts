import { ApiError, api } from "@/api/index.ts";
import type { AuditEvent } from "@/api/provenance.ts";
import { buildAddress } from "@/pages/audit/place.ts";
import { parseRecordId } from "@/proof/record.ts";

const PAGE = 1000;
const ENTITY = "WarmQuery";

/** Audit events of a query. */
export interface QueryHistory {
  /** Newest first. */
  events: AuditEvent[];
  /** False if older records were not read. */
  whole: boolean;
}

/** Returns the audit events of a query, from the newest thousand about queries; empty without an audit log. */
export async function fetchHistory(lookup: string, signal?: AbortSignal): Promise<QueryHistory> {
  const query = { target: "PlatformConfig", entityType: ENTITY, limit: PAGE };
  try {
    const answer = await api.request<AuditEvent[]>("GET", "/oi-api/provenance/events/query", undefined, {
      query,
      ...(signal ? { signal } : {}),
    });
    const events = answer.data.filter((event) => event.EntityID === lookup);
    return { events: sortNewestFirst(events), whole: answer.headers.get("x-provenance-has-more") !== "true" };
  } catch (error) {
    if (error instanceof ApiError && error.code === "PROVENANCE_NOT_PROVISIONED") {
      return { events: [], whole: true };
    }
    throw error;
  }
}

/** Returns the address of a record in the audit log. */
export function buildRecordLink(event: Pick<AuditEvent, "RecordID">): string {
  const chain = { target: "PlatformConfig", scopeKey: "" } as const;
  return buildAddress({ chain, filters: {}, at: undefined, record: parseRecordId(event.RecordID) ?? undefined });
}

function sortNewestFirst(events: AuditEvent[]): AuditEvent[] {
  return events.sort((left, right) => (left.RecordID < right.RecordID ? 1 : -1));
}
