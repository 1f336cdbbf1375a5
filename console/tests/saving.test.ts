import { afterEach, expect, test, vi } from "vitest";
import { api } from "../src/api/index.ts";
import type { WarmQuery } from "../src/api/queries.ts";
import { draftOf, newDraft } from "../src/pages/queries/edit/draft.ts";
import { differs, stored } from "../src/pages/queries/edit/saving.ts";

const QUERY: WarmQuery = {
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
const THEIRS: WarmQuery = { ...QUERY, kql: "T | take 2", updatedAt: "2026-01-05T09:00:00Z", editedBy: "other" };

afterEach(() => void vi.restoreAllMocks());

/** The client answers with these queries; gives what is sent to store. */
function standing(...queries: WarmQuery[]) {
  vi.spyOn(api, "get").mockResolvedValue({ warmQueries: queries });
  return vi.spyOn(api, "put").mockResolvedValue(undefined);
}

test("a query that somebody else saved or removed meanwhile is not overwritten unseen", async () => {
  const put = standing(THEIRS);
  expect(await stored(draftOf(QUERY), QUERY)).toEqual({ now: THEIRS });
  expect(put).not.toHaveBeenCalled();
  standing();
  expect(await stored(draftOf(QUERY), QUERY)).toEqual({ now: null });
});

test("who has seen what stands now overwrites it", async () => {
  const put = standing(THEIRS);
  expect(await stored(draftOf(QUERY), THEIRS)).toBeUndefined();
  expect(put).toHaveBeenCalledOnce();
});

test("a new query takes no other's lookup; without the right to read, nothing is read", async () => {
  const put = standing(QUERY);
  await expect(stored(draftOf(QUERY), null)).rejects.toThrow("lookup");
  expect(put).not.toHaveBeenCalled();
  await stored(draftOf(QUERY), undefined);
  expect(put).toHaveBeenCalledOnce();
  expect(api.get).toHaveBeenCalledOnce();
});

test("a form is unsaved once it would send something else", () => {
  const start = newDraft(undefined);
  expect(differs({ ...start }, start)).toBe(false);
  expect(differs({ ...start, kql: "x" }, start)).toBe(true);
  expect(differs({ ...start, lookup: "x" }, start)).toBe(true);
});
