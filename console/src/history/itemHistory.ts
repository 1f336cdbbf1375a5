// Audit events of one item of the catalog: a member, connection, surface, query, container, or the workspace.
import { parseExactDefinitions } from "@/api/exactNumbers.ts";
import { api, readJson } from "@/api/index.ts";
import { isWithoutAuditLog } from "@/api/problem.ts";
import type { AuditEvent } from "@/api/provenance.ts";
import { buildAddress } from "@/pages/audit/place.ts";
import { parseRecordId } from "@/proof/record.ts";

const PAGE = 1000;

/** An item in the audit log. */
export interface AuditedItem {
  target: "PlatformConfig" | "AccessControl";
  /** The workspace's settings have an entity type of their own. */
  entityTypes: readonly string[];
  entityId: string;
}

/** Audit events of an item. */
export interface ItemEvents {
  /** Newest first. */
  events: AuditEvent[];
  /** False if older records were not read. */
  whole: boolean;
}

/** Returns the audit events of an item, from the newest thousand of its entity types; empty without an audit log. */
export async function fetchItemEvents(item: AuditedItem, signal?: AbortSignal): Promise<ItemEvents> {
  try {
    const pages = await Promise.all(item.entityTypes.map((type) => fetchEvents(item.target, type, signal)));
    const events = pages.flatMap((page) => page.events).filter((event) => event.EntityID === item.entityId);
    return { events: sortNewestFirst(events), whole: pages.every((page) => page.whole) };
  } catch (error) {
    if (isWithoutAuditLog(error)) {
      return { events: [], whole: true };
    }
    throw error;
  }
}

/** Returns the newest thousand events about an entity type, with exact defaults of parameters. */
export async function fetchEvents(
  target: AuditedItem["target"],
  entityType: string,
  signal?: AbortSignal,
  actionType?: string,
): Promise<ItemEvents> {
  const reply = await api.fetch("GET", "/oi-api/provenance/events/query", undefined, {
    query: { target, entityType, actionType, limit: PAGE },
    ...(signal ? { signal } : {}),
  });
  const events = await readJson<AuditEvent[]>(reply, true, parseExactDefinitions);
  return { events, whole: reply.headers.get("x-provenance-has-more") !== "true" };
}

/** Returns the address of a record in the audit log. */
export function buildRecordLink(target: AuditedItem["target"], event: Pick<AuditEvent, "RecordID">): string {
  const chain = { target, scopeKey: "" } as const;
  return buildAddress({ chain, filters: {}, at: undefined, record: parseRecordId(event.RecordID) ?? undefined });
}

function sortNewestFirst(events: AuditEvent[]): AuditEvent[] {
  return events.sort((left, right) => (left.RecordID < right.RecordID ? 1 : -1));
}
