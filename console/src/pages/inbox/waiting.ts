// Decisions that wait for a person: draft queries and pending amendments.
import { fetchPendingAmendments, MAX_PAGE, type PendingPage } from "@/api/auditScopes.ts";
import type { Client } from "@/api/client.ts";
import { isWithoutAuditLog } from "@/api/problem.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { explainDenial } from "@/pages/amendments/entries.ts";
import { fetchWarmQueries } from "@/pages/queries/catalogQueries.ts";
import { explainDraftDenial } from "@/pages/queries/detail/draftDecisions.ts";

export type PendingAmendment = PendingPage["amendments"][number];

/** Number of waiting decisions; `more` if the list of amendments has further pages. */
export interface WaitingCount {
  count: number;
  more: boolean;
}

/** The reader of the inbox: what the token can read, and what it can decide. */
export interface Reader {
  principal: string | null;
  readsQueries: boolean;
  readsAmendments: boolean;
  approvesQueries: boolean;
  approvesAmendments: boolean;
}

/** Items that wait, divided by the person who decides: the reader, or somebody else. */
export interface Divided<Item> {
  mine: Item[];
  others: Item[];
}

const NO_AMENDMENTS: PendingPage = { amendments: [], cursor: null };

/** The largest number of requests for one page of the inbox; together they return at most 1,000 amendments. */
const MOST_REQUESTS = 5;
const REQUESTED = MAX_PAGE / MOST_REQUESTS;
/** A page of the inbox is full with so many amendments that the reader can decide. */
const ENOUGH = 50;

/** Divides the drafts by the person who must act: an approver, or after a rejection the editor. */
export function sortDrafts(queries: readonly WarmQuery[]): { waiting: WarmQuery[]; rejected: WarmQuery[] } {
  const drafts = queries
    .filter((query) => !query.approval)
    .sort((left, right) => left.updatedAt.localeCompare(right.updatedAt));
  return { waiting: drafts.filter((query) => !query.rejection), rejected: drafts.filter((query) => query.rejection) };
}

/** Divides drafts into those that the reader can decide, and the others. */
export function divideDrafts(waiting: readonly WarmQuery[], reader: Reader): Divided<WarmQuery> {
  const isMine = (query: WarmQuery) =>
    reader.approvesQueries && explainDraftDenial(query, reader.principal) === undefined;
  return { mine: waiting.filter(isMine), others: waiting.filter((query) => !isMine(query)) };
}

/** Divides amendments into those that the reader can decide, and the others. */
export function divideAmendments(rows: readonly PendingAmendment[], reader: Reader): Divided<PendingAmendment> {
  const isMine = (row: PendingAmendment) =>
    explainDenial(row.AmendedBy ?? "", reader.principal, reader.approvesAmendments) === undefined;
  return { mine: rows.filter(isMine), others: rows.filter((row) => !isMine(row)) };
}

/** Counts the decisions that wait for the reader; a part that the token cannot read counts as empty. */
export async function countWaiting(api: Client, reader: Reader, signal: AbortSignal): Promise<WaitingCount> {
  const counted = { ...reader, readsQueries: reader.readsQueries && reader.approvesQueries };
  const [queries, pending] = await Promise.all([
    fetchDrafts(counted, signal),
    fetchPending(api, { ...reader, readsAmendments: reader.readsAmendments && reader.approvesAmendments }, {}, signal),
  ]);
  const drafts = divideDrafts(sortDrafts(queries).waiting, reader).mine.length;
  const amendments = divideAmendments(pending.amendments, reader).mine.length;
  return { count: drafts + amendments, more: pending.cursor !== null };
}

/** Returns the queries; none if the token cannot read them. */
export async function fetchDrafts({ readsQueries }: Reader, signal: AbortSignal): Promise<WarmQuery[]> {
  return readsQueries ? await fetchWarmQueries(signal) : [];
}

/** Returns a page of pending amendments; an empty one without an audit log, or if the token cannot read them. */
export async function fetchPending(
  api: Client,
  { readsAmendments }: Reader,
  { limit = MAX_PAGE, cursor }: { limit?: number; cursor?: string | undefined },
  signal: AbortSignal,
): Promise<PendingPage> {
  try {
    return readsAmendments ? await fetchPendingAmendments(api, { limit, cursor }, signal) : NO_AMENDMENTS;
  } catch (error) {
    if (isWithoutAuditLog(error)) {
      return NO_AMENDMENTS;
    }
    throw error;
  }
}

/**
 * Returns the pending amendments of one page of the inbox, and the cursor of the next page.
 *
 * If the reader can decide amendments, reads on until the page has 50 that the reader can decide, or 1,000 in all.
 */
export async function fetchInboxPage(
  api: Client,
  reader: Reader,
  from: string | undefined,
  signal: AbortSignal,
): Promise<PendingPage> {
  const amendments: PendingAmendment[] = [];
  const requests = reader.approvesAmendments && reader.principal !== null ? MOST_REQUESTS : 1;
  let cursor = from ?? null;
  let decidable = 0;
  for (let request = 0; request < requests && decidable < ENOUGH; request++) {
    const page = await fetchPending(api, reader, { limit: REQUESTED, cursor: cursor ?? undefined }, signal);
    amendments.push(...page.amendments);
    decidable += divideAmendments(page.amendments, reader).mine.length;
    cursor = page.cursor;
    if (cursor === null) {
      break;
    }
  }
  return { amendments, cursor };
}

/** Formats a count: `12`, or `1,000+` with further pages; an empty text for 0, also with further pages. */
export function formatWaiting({ count, more }: WaitingCount): string {
  if (count === 0) {
    return "";
  }
  return `${count.toLocaleString("en")}${more ? "+" : ""}`;
}
