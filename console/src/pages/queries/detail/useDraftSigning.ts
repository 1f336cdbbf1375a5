import type { WarmQuery } from "@/api/queries.ts";
import { buildHref } from "@/router/route.ts";
import { describeSubject, findSignature, type PendingSignature } from "@/signing/pendingSignature.ts";
import { type Signing, useSigning } from "@/signing/useSigning.ts";

/** Returns what the caller typed before a sign-in elsewhere; undefined if there is nothing about this version. */
export function findDraftSignature(query: WarmQuery, principal: string | null): PendingSignature | undefined {
  return findSignature(describeDraft(query), principal);
}

/** Provides the signature of a decision about a draft. */
export function useDraftSigning(
  query: WarmQuery,
  verb: "approve" | "reject",
  text: string,
  pending: PendingSignature | undefined,
): Signing {
  return useSigning({
    ...{ kind: "queries", verb, right: "Workspace.WarmQuery.Approve", subject: describeDraft(query) },
    ...{ address: buildHref("queries", [query.lookup]), text, pending },
  });
}

function describeDraft(query: WarmQuery): string {
  return describeSubject("query", query.lookup, query.etag);
}
