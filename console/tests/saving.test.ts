import { afterEach, expect, test, vi } from "vitest";
import { Attempts } from "../src/api/attempts.ts";
import { ApiError, api } from "../src/api/index.ts";
import { createUnreachableError } from "../src/api/problem.ts";
import type { WarmQuery } from "../src/api/queries.ts";
import { createDraft, toDraft } from "../src/pages/queries/edit/draft.ts";
import { findMissingFields, hasChanges, storeChange, storeNew } from "../src/pages/queries/edit/saving.ts";

const QUERY: WarmQuery = {
  etag: '"1"',
  lookup: "q",
  apiPath: null,
  name: "Q",
  description: null,
  surface: "cooling",
  kql: "T | take 1",
  parameters: [],
  cacheSeconds: 0,
  schema: null,
  createdAt: "2026-01-05T08:00:00Z",
  updatedAt: "2026-01-05T08:00:00Z",
  editedBy: "editor",
  approval: null,
};
const SAVED: WarmQuery = { ...QUERY, etag: '"3"' };
const THEIRS: WarmQuery = { ...QUERY, etag: '"2"', kql: "T | take 2", editedBy: "other" };

afterEach(() => void vi.restoreAllMocks());

/** The list of queries holds these. */
function listing(...queries: WarmQuery[]) {
  const list = JSON.stringify({ warmQueries: queries });
  return vi.spyOn(api, "fetch").mockImplementation(() => Promise.resolve(new Response(list)));
}

/** The service holds these queries, and keeps to conditions; gives what is sent to store. */
function standing(...queries: WarmQuery[]) {
  listing(...queries);
  return vi.spyOn(api, "put").mockImplementation((_path, _body, options) => {
    const [held] = queries;
    const { "If-Match": match, "If-None-Match": none } = options?.headers ?? {};
    if (match !== undefined ? held?.etag !== match : none === "*" && held) {
      return Promise.reject(new ApiError({ status: 412, code: "PRECONDITION_FAILED", detail: "another" }));
    }
    return Promise.resolve(SAVED as never);
  });
}

test("every save is on condition of what its author saw", async () => {
  const put = standing(QUERY);
  expect(await storeChange(toDraft(QUERY), QUERY, new Attempts())).toEqual({ stored: SAVED });
  expect(put.mock.calls[0]?.[2]).toEqual({ headers: { "If-Match": '"1"' } });
  const made = standing();
  await storeNew(toDraft(QUERY), new Attempts());
  expect(made.mock.lastCall?.[2]).toEqual({ headers: { "If-None-Match": "*" } });
});

test("a query that somebody else saved or removed meanwhile is not overwritten unseen", async () => {
  standing(THEIRS);
  expect(await storeChange(toDraft(QUERY), QUERY, new Attempts())).toEqual({ now: THEIRS, isPossiblyOwn: false });
  standing();
  expect(await storeChange(toDraft(QUERY), QUERY, new Attempts())).toEqual({ now: null, isPossiblyOwn: false });
  standing(THEIRS);
  expect(await storeChange(toDraft(QUERY), null, new Attempts())).toEqual({ now: THEIRS, isPossiblyOwn: false });
});

test("who has seen what stands now overwrites it, or makes anew what was removed", async () => {
  standing(THEIRS);
  expect(await storeChange(toDraft(QUERY), THEIRS, new Attempts())).toEqual({ stored: SAVED });
  standing();
  expect(await storeChange(toDraft(QUERY), null, new Attempts())).toEqual({ stored: SAVED });
});

test("where the newer text cannot be read yet, nothing is stored and the refusal is told", async () => {
  standing(THEIRS);
  listing(QUERY);
  await expect(storeChange(toDraft(QUERY), QUERY, new Attempts())).rejects.toThrow("another");
});

test("a new query takes no other's lookup, and nothing is read to find out", async () => {
  standing(QUERY);
  await expect(storeNew(toDraft(QUERY), new Attempts())).rejects.toMatchObject({ errors: [{ field: "lookup" }] });
  expect(api.fetch).not.toHaveBeenCalled();
});

test("every empty field that is required has a message", () => {
  const empty = { ...createDraft(" "), lookup: " " };
  expect(Object.keys(findMissingFields(empty, true))).toEqual(["lookup", "name", "surface", "kql"]);
  expect(findMissingFields(toDraft(QUERY), true)).toEqual({});
  expect(findMissingFields({ ...toDraft(QUERY), lookup: "" }, false)).toEqual({});
});

test("other refusals are told as they are", async () => {
  vi.spyOn(api, "put").mockRejectedValue(new ApiError({ status: 409, code: "WARM_QUERY_NAME_TAKEN", detail: "taken" }));
  await expect(storeChange(toDraft(QUERY), QUERY, new Attempts())).rejects.toThrow("taken");
  await expect(storeNew(toDraft(QUERY), new Attempts())).rejects.toThrow("taken");
});

test("a form is unsaved once it would send something else", () => {
  const start = createDraft(undefined);
  expect(hasChanges({ ...start }, start)).toBe(false);
  expect(hasChanges({ ...start, kql: "x" }, start)).toBe(true);
  expect(hasChanges({ ...start, lookup: "x" }, start)).toBe(true);
});

/** Loses the reply to the first attempt of a save; the service then holds these queries. */
async function loseReply(save: (attempts: Attempts) => Promise<unknown>, ...queries: WarmQuery[]): Promise<Attempts> {
  const attempts = new Attempts();
  standing(...queries).mockRejectedValueOnce(createUnreachableError());
  await expect(save(attempts)).rejects.toThrow("does not respond");
  return attempts;
}

const DRAFT = { ...toDraft(QUERY), kql: "T | take 3" };
const MINE: WarmQuery = { ...QUERY, etag: '"2"', kql: "T | take 3" };

test("a repeated save counts as saved if the draft is stored as typed", async () => {
  const changed = await loseReply((attempts) => storeChange(DRAFT, QUERY, attempts), MINE);
  expect(await storeChange(DRAFT, QUERY, changed)).toEqual({ stored: MINE });
  const made = await loseReply((attempts) => storeNew(DRAFT, attempts), MINE);
  expect(await storeNew(DRAFT, made)).toEqual({ stored: MINE });
});

test("a conflict after a lost reply is possibly with the author's own earlier text", async () => {
  const edited = { ...DRAFT, kql: "T | take 4" };
  const changed = await loseReply((attempts) => storeChange(DRAFT, QUERY, attempts), MINE);
  expect(await storeChange(edited, QUERY, changed)).toEqual({ now: MINE, isPossiblyOwn: true });
  const made = await loseReply((attempts) => storeNew(DRAFT, attempts), MINE);
  const message = expect.stringContaining("possibly from your earlier attempt");
  await expect(storeNew(edited, made)).rejects.toMatchObject({ errors: [{ field: "lookup", message }] });
});

test("a draft that was decided after a lost reply is shown with its decision", async () => {
  const approved = { ...MINE, approval: { approvedBy: "other", approvedAt: "2026-01-05T09:00:00Z" } };
  const attempts = await loseReply((first) => storeChange(DRAFT, QUERY, first), approved);
  expect(await storeChange(DRAFT, QUERY, attempts)).toEqual({ now: approved, isPossiblyOwn: true });
});
