import { ApiError, api } from "@/api/index.ts";
import type { AuditEvent } from "@/api/provenance.ts";
import { addressOf } from "@/pages/audit/place.ts";
import { sequenceOf } from "@/proof/record.ts";

const PAGE = 1000;
const ENTITY = "WarmQuery";

/** What the audit log tells of a query. */
export interface Told {
  /** Newest first. */
  events: AuditEvent[];
  /** False where older records were not asked for. */
  whole: boolean;
}

/** Gives the audit events of a query, of the newest thousand about queries; nothing where there is no audit log. */
export async function historyOf(lookup: string, signal?: AbortSignal): Promise<Told> {
  const query = { target: "PlatformConfig", entityType: ENTITY, limit: PAGE };
  try {
    const answer = await api.request<AuditEvent[]>("GET", "/oi-api/provenance/events/query", undefined, {
      query,
      ...(signal ? { signal } : {}),
    });
    const events = answer.data.filter((event) => event.EntityID === lookup);
    return { events: newestFirst(events), whole: answer.headers.get("x-provenance-has-more") !== "true" };
  } catch (error) {
    if (error instanceof ApiError && error.code === "PROVENANCE_NOT_PROVISIONED") {
      return { events: [], whole: true };
    }
    throw error;
  }
}

/** Returns the address of a record in the audit log. */
export function recordLink(event: Pick<AuditEvent, "RecordID">): string {
  const chain = { target: "PlatformConfig", scopeKey: "" } as const;
  return addressOf({ chain, filters: {}, at: undefined, record: sequenceOf(event.RecordID) ?? undefined });
}

function newestFirst(events: AuditEvent[]): AuditEvent[] {
  return events.sort((left, right) => (left.RecordID < right.RecordID ? 1 : -1));
}
