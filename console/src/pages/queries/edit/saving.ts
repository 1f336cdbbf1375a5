// Saving a query without losing what somebody else saved meanwhile.
import { ApiError, api, at } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { warmQuery } from "../catalogQueries.ts";
import { bodyOf, draftOf, type QueryDraft } from "./draft.ts";

/** Who saved the query meanwhile: what stands now, null where it was removed. */
export interface Overtaken {
  now: WarmQuery | null;
}

/**
 * Stores a draft.
 *
 * @param known the query as the author last saw it; null for a new one, undefined where the token reads none
 * @returns what somebody else made of it meanwhile, and then nothing is stored; undefined once it is stored
 * @throws ApiError where a field fails, or a new query's lookup is another's
 */
export async function stored(draft: QueryDraft, known: WarmQuery | null | undefined): Promise<Overtaken | undefined> {
  const lookup = draft.lookup.trim();
  if (lookup === "") {
    throw failed("lookup", "is needed");
  }
  if (known !== undefined) {
    const now = (await warmQuery(lookup)) ?? null;
    if (known === null && now !== null) {
      throw failed("lookup", "is another query's; choose another, or edit that one");
    }
    if (known !== null && now?.updatedAt !== known.updatedAt) {
      return { now };
    }
  }
  await api.put(at`/oi-api/warm-queries/${lookup}`, bodyOf(draft));
  return undefined;
}

/** Whether a form holds something else than it began with. */
export function differs(draft: QueryDraft, start: QueryDraft): boolean {
  return draft.lookup !== start.lookup || JSON.stringify(bodyOf(draft)) !== JSON.stringify(bodyOf(start));
}

/** A stored query as it would be sent, to compare with a draft. */
export function sentAs(query: WarmQuery): Record<string, unknown> {
  return bodyOf(draftOf(query));
}

function failed(field: string, message: string): ApiError {
  return new ApiError({ status: 0, code: "NOT_SENT", detail: `${field} ${message}`, errors: [{ field, message }] });
}
