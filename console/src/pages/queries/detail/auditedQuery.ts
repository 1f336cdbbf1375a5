import type { WarmQuery } from "@/api/queries.ts";
import type { AuditedItem } from "@/history/itemHistory.ts";

/** Returns the name of a query in the audit log. */
export function toAuditedItem(query: Pick<WarmQuery, "lookup">): AuditedItem {
  return { target: "PlatformConfig", entityTypes: ["WarmQuery"], entityId: query.lookup };
}
