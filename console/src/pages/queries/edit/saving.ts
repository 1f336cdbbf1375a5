// Saving of queries without overwriting the edits of others.
import type { Attempts } from "@/api/attempts.ts";
import { ApiError, api, formatPath, isOutdated } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { isSame } from "@/components/diff.ts";
import { fetchWarmQuery } from "../catalogQueries.ts";
import { type QueryDraft, toBody, toDraft } from "./draft.ts";

/** A conflict with another person's edit: the current version, null if it was removed. */
export interface EditConflict {
  now: WarmQuery | null;
  /** Whether the author's own earlier attempt possibly stored the current version. */
  isPossiblyOwn: boolean;
}

/** The stored query, or the conflict that prevented its change. */
export type SaveResult = { stored: WarmQuery } | EditConflict;

/** Stores a draft unless the query changed since its author read it.
 *
 * @param seen the query as its author last read it; null if it did not exist
 * @param attempts the attempts to store it; after a lost reply, an undecided draft as typed is the result
 * @throws ApiError if a field is invalid, or on a conflict: {@link isOutdated}
 */
async function store(draft: QueryDraft, seen: WarmQuery | null, attempts: Attempts): Promise<WarmQuery> {
  const lookup = draft.lookup.trim();
  const headers: Record<string, string> = seen ? { "If-Match": seen.etag } : { "If-None-Match": "*" };
  const body = toBody(draft);
  const findStored = async () => {
    const now = await fetchWarmQuery(lookup);
    const isResult = now && !now.approval && !now.rejection && isSame(toSentBody(now), body);
    return isResult ? now : undefined;
  };
  return await attempts.run(
    () => api.put<WarmQuery>(formatPath`/oi-api/warm-queries/${lookup}`, body, { headers }),
    findStored,
  );
}

/**
 * Stores a new query under an unused lookup.
 *
 * @param attempts the attempts to store it, see {@link store}
 * @throws ApiError if a field is invalid; an error of the field `lookup` if the lookup is in use
 */
export async function storeNew(draft: QueryDraft, attempts: Attempts): Promise<{ stored: WarmQuery }> {
  try {
    return { stored: await store(draft, null, attempts) };
  } catch (error) {
    throw isOutdated(error) ? createFieldError("lookup", explainUsedLookup(error)) : error;
  }
}

function explainUsedLookup({ isPossiblyOwn }: ApiError): string {
  return isPossiblyOwn
    ? "exists already, possibly from your earlier attempt; look at that query before you choose another ID"
    : "belongs to another query; choose another ID, or edit that query";
}

/**
 * Stores a change.
 *
 * @param seen the query as its author last read it; null if it was removed
 * @param attempts the attempts to store it, see {@link store}
 * @returns the stored query, or the conflicting version of another person; then nothing is stored
 * @throws ApiError if a field is invalid, or the conflicting version cannot be read yet
 */
export async function storeChange(draft: QueryDraft, seen: WarmQuery | null, attempts: Attempts): Promise<SaveResult> {
  try {
    return { stored: await store(draft, seen, attempts) };
  } catch (error) {
    if (!isOutdated(error)) {
      throw error;
    }
    const now = (await fetchWarmQuery(draft.lookup)) ?? null;
    if (now?.etag === seen?.etag) {
      // The list of another instance can be some seconds behind, without the newer version.
      throw error;
    }
    return { now, isPossiblyOwn: error.isPossiblyOwn };
  }
}

/** Tells whether a form differs from its initial values. */
export function hasChanges(draft: QueryDraft, start: QueryDraft): boolean {
  return draft.lookup !== start.lookup || JSON.stringify(toBody(draft)) !== JSON.stringify(toBody(start));
}

/** Converts a stored query to a request body, to compare it with a draft. */
export function toSentBody(query: WarmQuery): Record<string, unknown> {
  return toBody(toDraft(query));
}

/** Returns the messages of all fields that are empty but required, by the service's names. */
export function findMissingFields(draft: QueryDraft, isNew: boolean): Partial<Record<keyof QueryDraft, string>> {
  return {
    ...(isNew && draft.lookup.trim() === "" ? { lookup: "Enter an ID, such as pressure-5m." } : {}),
    ...(draft.name.trim() === "" ? { name: "Enter a name." } : {}),
    ...(draft.surface === "" ? { surface: "Choose a surface." } : {}),
    ...(draft.kql.trim() === "" ? { kql: "Enter a query." } : {}),
  };
}

function createFieldError(field: string, message: string): ApiError {
  const detail = "The query was not saved. Correct the marked field.";
  return new ApiError({ status: 0, code: "NOT_SENT", detail, errors: [{ field, message }] });
}
