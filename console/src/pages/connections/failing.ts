import type { ConnectionItem } from "@/api/connections.ts";

/** Tells whether a connection is enabled but does not work. */
export function isFailing(item: Pick<ConnectionItem, "enabled" | "status" | "statusReason">): boolean {
  return item.enabled && (item.status === "ERROR" || item.statusReason !== null);
}
