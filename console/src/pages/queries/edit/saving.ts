// Saving a query without losing what somebody else saved meanwhile.
import { ApiError, api, formatPath, isOutdated } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { fetchWarmQuery } from "../catalogQueries.ts";
import { type QueryDraft, toBody, toDraft } from "./draft.ts";

/** Somebody changed the query meanwhile: what stands now, null where it was removed. */
export interface EditConflict {
  now: WarmQuery | null;
}

/**
 * Stores a draft where nothing else stands than its author has seen.
 *
 * @param seen the query as its author last saw it; null where they saw that there is none
 * @throws ApiError where a field fails, or something else stands there: {@link isOutdated}
 */
async function store(draft: QueryDraft, seen: WarmQuery | null): Promise<void> {
  const lookup = draft.lookup.trim();
  if (lookup === "") {
    throw createFieldError("lookup", "is needed");
  }
  const headers: Record<string, string> = seen ? { "If-Match": seen.etag } : { "If-None-Match": "*" };
  await api.put(formatPath`/oi-api/warm-queries/${lookup}`, toBody(draft), { headers });
}

/** Stores a new query; its lookup is nobody's yet. */
export async function storeNew(draft: QueryDraft): Promise<undefined> {
  try {
    await store(draft, null);
    return undefined;
  } catch (error) {
    throw isOutdated(error)
      ? createFieldError("lookup", "is another query's; choose another, or edit that one")
      : error;
  }
}

/**
 * Stores a change.
 *
 * @returns what somebody else made of the query meanwhile, and then nothing is stored; undefined once it is stored
 * @throws ApiError where a field fails, or what somebody else made cannot be read yet
 */
export async function storeChange(draft: QueryDraft, seen: WarmQuery | null): Promise<EditConflict | undefined> {
  try {
    await store(draft, seen);
    return undefined;
  } catch (error) {
    if (!isOutdated(error)) {
      throw error;
    }
    const now = (await fetchWarmQuery(draft.lookup)) ?? null;
    if (now?.etag === seen?.etag) {
      // Another instance's list is some seconds behind: it has nothing newer to show yet.
      throw error;
    }
    return { now };
  }
}

/** Whether a form holds something else than it began with. */
export function hasChanges(draft: QueryDraft, start: QueryDraft): boolean {
  return draft.lookup !== start.lookup || JSON.stringify(toBody(draft)) !== JSON.stringify(toBody(start));
}

/** A stored query as it would be sent, to compare with a draft. */
export function toSentBody(query: WarmQuery): Record<string, unknown> {
  return toBody(toDraft(query));
}

function createFieldError(field: string, message: string): ApiError {
  return new ApiError({ status: 0, code: "NOT_SENT", detail: `${field} ${message}`, errors: [{ field, message }] });
}
