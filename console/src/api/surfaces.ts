import { type Client, formatPath } from "./client.ts";
import { fetchAllItems, type ItemChange, type StoredItem } from "./items.ts";

/** A named group of connections. */
export interface SurfaceItem extends StoredItem, ItemChange {
  lookup: string;
  name: string;
  description: string | null;
  /** Lookups. */
  connections: string[];
  /** Lookups of its warm queries. */
  queries: string[];
}

/** Returns all surfaces, sorted by lookup; needs Workspace.Catalog.Read. */
export function fetchSurfaceItems(api: Client, signal?: AbortSignal): Promise<SurfaceItem[]> {
  return fetchAllItems<SurfaceItem>(api, "/oi-api/surfaces", "surfaces", signal);
}

export function surfacePath(lookup: string): string {
  return formatPath`/oi-api/surfaces/${lookup}`;
}
