import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import type { WarmQuery } from "../src/api/queries.ts";
import { toDraft } from "../src/pages/queries/edit/draft.ts";
import { QueryForm } from "../src/pages/queries/edit/QueryForm.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, root, show, submit, typeText } from "./mounted.ts";

const QUERY: WarmQuery = {
  ...{ etag: '"1"', lookup: "q", apiPath: null, name: "Q", description: null, surface: "cooling" },
  ...{ kql: "T", parameters: [], cacheSeconds: 0, schema: null, createdAt: "", updatedAt: "" },
  ...{ editedBy: "me", approval: null },
};

mountRoot();

test("an author who typed during a save, and stays on the page, can save again", async () => {
  const who = { principal: "me", name: "Me", workspace: "w", accessRights: [], via: "jwt", expiresAt: null };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  vi.spyOn(session.api, "get").mockRejectedValue(new ApiError({ status: 403, code: "NONE", detail: "none" }));
  window.confirm = () => false;
  let resolve: (query: WarmQuery) => void = () => undefined;
  const put = vi.spyOn(session.api, "put").mockImplementation(() => new Promise((done) => (resolve = done as never)));
  await show(<QueryForm begin={toDraft(QUERY)} stands={QUERY} />);
  await typeText("First");
  await submit();
  await typeText("Second");
  await act(() => resolve({ ...QUERY, etag: '"2"' }));
  const save = root.querySelector<HTMLButtonElement>("button[type=submit]");
  await vi.waitFor(() => expect(save?.disabled).toBe(false));
  await submit();
  expect(put.mock.lastCall?.[1]).toMatchObject({ name: "Second" });
  expect(put.mock.lastCall?.[2]).toEqual({ headers: { "If-Match": '"2"' } });
});
