import { expect, test } from "vitest";
import type { Client } from "../src/api/client.ts";
import { ApiError } from "../src/api/problem.ts";
import type { WarmQuery } from "../src/api/queries.ts";
import {
  countWaiting,
  divideAmendments,
  divideDrafts,
  fetchInboxPage,
  formatWaiting,
  type PendingAmendment,
  type Reader,
  sortDrafts,
} from "../src/pages/inbox/waiting.ts";
import { explainDraftDenial } from "../src/pages/queries/detail/draftDecisions.ts";

const REJECTION = { rejectedBy: "approver@t", rejectedAt: "2026-01-05T08:00:00Z", comment: "No." };
const APPROVAL = { approvedBy: "approver@t", approvedAt: "2026-01-05T08:00:00Z" };

const READER: Reader = {
  principal: "approver@t",
  readsQueries: true,
  readsAmendments: true,
  approvesQueries: true,
  approvesAmendments: true,
};

function createQuery(lookup: string, some: Partial<WarmQuery> = {}): WarmQuery {
  return { lookup, editedBy: "editor@t", updatedAt: "2026-01-05T08:00:00Z", approval: null, ...some } as WarmQuery;
}

test("drafts wait for a decision, the oldest first; rejected ones wait for their editor", () => {
  const found = sortDrafts([
    createQuery("newer", { updatedAt: "2026-01-06T08:00:00Z" }),
    createQuery("older"),
    createQuery("approved", { approval: APPROVAL }),
    createQuery("rejected", { rejection: REJECTION }),
  ]);
  expect(found.waiting.map((query) => query.lookup)).toEqual(["older", "newer"]);
  expect(found.rejected.map((query) => query.lookup)).toEqual(["rejected"]);
});

test("a count with further pages has a plus sign", () => {
  expect(formatWaiting({ count: 12, more: false })).toBe("12");
  expect(formatWaiting({ count: 1003, more: true })).toBe("1,003+");
});

test("a count of 0 has no text, even with further pages", async () => {
  const { client } = createClient(repeat("approver@t", 1001));
  const waiting = await countWaiting(client, { ...READER, readsQueries: false }, new AbortController().signal);
  expect(waiting).toEqual({ count: 0, more: true });
  expect(formatWaiting(waiting)).toBe("");
  expect(formatWaiting({ count: 0, more: false })).toBe("");
});

test("a workspace without an audit log has no pending amendments", async () => {
  const fail = (code: string) =>
    ({
      get: () => Promise.reject(new ApiError({ status: 503, code, detail: "", requestId: "" })),
    }) as unknown as Client;
  const readable = { ...READER, readsQueries: false };
  const { signal } = new AbortController();
  expect(await countWaiting(fail("PROVENANCE_NOT_PROVISIONED"), readable, signal)).toEqual({ count: 0, more: false });
  await expect(countWaiting(fail("OVERLOADED"), readable, signal)).rejects.toThrow(ApiError);
});

test("editors, services and drafts that were rejected get a reason instead of a decision", () => {
  expect(explainDraftDenial(createQuery("a"), "approver@t")).toBeUndefined();
  expect(explainDraftDenial(createQuery("a"), "Editor@t")).toContain("You edited it last");
  expect(explainDraftDenial(createQuery("a"), null)).toContain("no user identity");
  expect(explainDraftDenial(createQuery("a", { rejection: REJECTION }), "other@t")).toContain("approver@t rejected it");
});

test("the inbox separates what the reader can decide from what others must decide", () => {
  const drafts = [createQuery("theirs"), createQuery("mine", { editedBy: "approver@t" })];
  expect(divideDrafts(drafts, READER).mine.map(({ lookup }) => lookup)).toEqual(["theirs"]);
  expect(divideDrafts(drafts, { ...READER, approvesQueries: false }).others).toHaveLength(2);
  const amendments = [{ AmendedBy: "editor@t" }, { AmendedBy: "Approver@t" }, {}] as PendingAmendment[];
  expect(divideAmendments(amendments, READER).mine).toEqual([{ AmendedBy: "editor@t" }, {}]);
  expect(divideAmendments(amendments, { ...READER, principal: null }).mine).toEqual([]);
});

test("the badge counts only what the reader can decide, and reads nothing else", async () => {
  const asked: string[] = [];
  const page = { amendments: [{ AmendedBy: "editor@t" }, { AmendedBy: "approver@t" }], cursor: null };
  const client = { get: async (path: string) => asked.push(path) && page } as unknown as Client;
  const { signal } = new AbortController();
  const reader = { ...READER, readsQueries: false };
  expect(await countWaiting(client, reader, signal)).toEqual({ count: 1, more: false });
  asked.length = 0;
  expect(await countWaiting(client, { ...reader, approvesAmendments: false }, signal)).toEqual({
    count: 0,
    more: false,
  });
  expect(asked).toEqual([]);
});

/** Returns a client with pending amendments of these authors, which records the limits of the requested pages. */
function createClient(authors: readonly string[]) {
  const limits: number[] = [];
  const get = async (_: string, { query }: { query: { limit: number; cursor?: string } }) => {
    limits.push(query.limit);
    const start = Number(query.cursor ?? 0);
    const end = start + query.limit;
    const amendments = authors.slice(start, end).map((AmendedBy) => ({ AmendedBy }));
    return { amendments, cursor: end < authors.length ? String(end) : null };
  };
  return { client: { get } as unknown as Client, limits };
}

function repeat(author: string, count: number): string[] {
  return new Array<string>(count).fill(author);
}

test("a page of the inbox is filled with amendments that the reader can decide", async () => {
  const { signal } = new AbortController();
  const { client, limits } = createClient([...repeat("approver@t", 390), ...repeat("editor@t", 100)]);
  const page = await fetchInboxPage(client, READER, undefined, signal);
  expect(divideAmendments(page.amendments, READER).mine).toHaveLength(100);
  expect(page.cursor).toBeNull();
  expect(limits).toEqual([200, 200, 200]);
});

test("a page of the inbox ends after 50 decidable amendments or 1,000 in all, and the next page continues there", async () => {
  const { signal } = new AbortController();
  const full = createClient(repeat("editor@t", 300));
  expect((await fetchInboxPage(full.client, READER, undefined, signal)).cursor).toBe("200");
  const { client, limits } = createClient([...repeat("approver@t", 1000), "editor@t"]);
  const first = await fetchInboxPage(client, READER, undefined, signal);
  expect(first).toMatchObject({ amendments: { length: 1000 }, cursor: "1000" });
  expect(limits).toHaveLength(5);
  const second = await fetchInboxPage(client, READER, "1000", signal);
  expect(second).toEqual({ amendments: [{ AmendedBy: "editor@t" }], cursor: null });
});

test("a reader who cannot decide amendments gets each page with one request", async () => {
  const { signal } = new AbortController();
  for (const reader of [
    { ...READER, approvesAmendments: false },
    { ...READER, principal: null },
  ]) {
    const { client, limits } = createClient(repeat("editor@t", 300));
    expect(await fetchInboxPage(client, reader, undefined, signal)).toMatchObject({ amendments: { length: 200 } });
    expect(limits).toHaveLength(1);
  }
});
