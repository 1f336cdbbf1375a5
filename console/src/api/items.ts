// Single items of the catalog: members, connections, surfaces, containers and the workspace.
import type { Attempts } from "./attempts.ts";
import type { Client } from "./client.ts";
import { ApiError } from "./problem.ts";

/** A stored item. Its ETag identifies the definition; the state of a connection does not change it. */
export interface StoredItem {
  etag: string;
}

/** The latest change of an item. */
export interface ItemChange {
  editedBy: string | null;
  updatedAt: string | null;
}

/** Returns all items of a list, page by page. */
export async function fetchAllItems<Item>(
  api: Client,
  path: string,
  member: string,
  signal?: AbortSignal,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const options = { query: { cursor }, ...(signal ? { signal } : {}) };
    const page: Record<string, unknown> = await api.get<Record<string, unknown>>(path, options);
    items.push(...(page[member] as Item[]));
    cursor = page.cursor as string | undefined;
  } while (cursor);
  return items;
}

/**
 * Creates or replaces an item.
 * @param etag the ETag of the version that the user saw; null to create only
 * @param parse parses the reply; the default rounds whole numbers beyond 2^53
 * @throws ApiError on a conflict: `isOutdated`
 */
export function storeItem<Item>(
  api: Client,
  path: string,
  body: unknown,
  etag: string | null,
  parse?: (text: string) => unknown,
): Promise<Item> {
  const headers: Record<string, string> = etag === null ? { "If-None-Match": "*" } : { "If-Match": etag };
  return api.put<Item>(path, body, { headers, parse });
}

/**
 * Removes the version of an item that the user saw.
 * @param attempts the attempts to remove it; after a lost reply, a missing item is a removed one
 * @throws ApiError on a conflict: `isOutdated`
 */
export async function removeItem(api: Client, path: string, etag: string, attempts: Attempts): Promise<void> {
  const remove = async () => {
    await api.delete(path, { headers: { "If-Match": etag } });
    return true;
  };
  await attempts.run(remove, async () => (await isMissing(api, path)) || undefined);
}

async function isMissing(api: Client, path: string): Promise<boolean> {
  try {
    await api.get(path);
    return false;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      return true;
    }
    throw error;
  }
}
