import { type Client, formatPath } from "@/api/client.ts";
import { announceDecision } from "@/api/decisions.ts";
import type { WarmQuery } from "@/api/queries.ts";
import type { SignatureRequest } from "@/api/signatures.ts";

/** Explains why a caller with Workspace.WarmQuery.Approve may not decide a draft; undefined if they may. */
export function explainDraftDenial(query: WarmQuery, principal: string | null): string | undefined {
  if (principal === null) {
    return "Service tokens have no user identity, so they cannot decide about queries.";
  }
  if (query.rejection) {
    return `${query.rejection.rejectedBy} rejected it; its text must change before another decision.`;
  }
  return principal.toLowerCase() === query.editedBy.toLowerCase()
    ? "You edited it last; another person with Workspace.WarmQuery.Approve must approve it."
    : undefined;
}

/**
 * Stores a decision about a draft.
 * The ETag prevents a decision about a text that its author has not seen.
 * @param key the Idempotency-Key; a repeat with the same key and body stores nothing
 * @throws ApiError if the decision is refused; `isOutdated` if the query changed
 */
export async function decideDraft(
  client: Client,
  query: WarmQuery,
  verb: "approve" | "reject",
  key: string,
  body: DraftDecision,
): Promise<void> {
  const path = formatPath`/oi-api/warm-queries/${query.lookup}/${verb}`;
  const isEmpty = Object.values(body).every((value) => value === undefined);
  const headers = { "If-Match": query.etag, "Idempotency-Key": key };
  await client.post(path, isEmpty ? undefined : body, { headers });
  announceDecision();
}

/** The body of a decision. */
interface DraftDecision {
  comment?: string;
  signature?: SignatureRequest | undefined;
}
