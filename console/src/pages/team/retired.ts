import { isWithoutAuditLog } from "@/api/problem.ts";
import type { AuditEvent } from "@/api/provenance.ts";
import type { Member } from "@/api/team.ts";
import { fetchEvents } from "@/history/itemHistory.ts";

/** The ID of a removed member. */
export interface RetiredId {
  id: string;
  name: string;
  removedBy: string;
  removedAt: string;
  recordId: string;
}

/** Reads removed members from the audit log; empty without an audit log. */
export async function fetchRemovals(signal?: AbortSignal): Promise<AuditEvent[]> {
  try {
    return (await fetchEvents("AccessControl", "Member", signal, "Catalog.Member.Removed")).events;
  } catch (error) {
    if (isWithoutAuditLog(error)) {
      return [];
    }
    throw error;
  }
}

/** Returns the IDs that no member has now, the newest removal first. */
export function listRetiredIds(removals: readonly AuditEvent[], members: readonly Pick<Member, "id">[]): RetiredId[] {
  const current = new Set(members.map(({ id }) => id));
  const found = new Map<string, RetiredId>();
  for (const event of [...removals].sort((left, right) => (left.RecordID < right.RecordID ? 1 : -1))) {
    if (!current.has(event.EntityID) && !found.has(event.EntityID)) {
      found.set(event.EntityID, {
        id: event.EntityID,
        name: String(event.BeforeState?.name ?? ""),
        removedBy: event.UserID,
        removedAt: event.Timestamp,
        recordId: event.RecordID,
      });
    }
  }
  return [...found.values()];
}
