import { expect, test, vi } from "vitest";
import type { WarmQuery } from "../src/api/queries.ts";
import { Changes } from "../src/pages/queries/detail/Changes.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, root, show } from "./mounted.ts";

const STATE = {
  ...{ lookup: "q", apiPath: null, name: "Q", description: null, surface: "cooling", kql: "T | take n" },
  ...{ parameters: [{ name: "n", type: "long", default: 5 }], cacheSeconds: 0 },
};
const APPROVED = { ...STATE, approval: { approvedBy: "ann@t", approvedAt: "2026-01-05T08:00:00Z" } };
const DRAFT = {
  ...{ ...STATE, cacheSeconds: 77, parameters: [{ name: "n", type: "long", default: 6 }] },
  ...{ etag: '"q"', schema: null, createdAt: "", updatedAt: "", editedBy: "ben@t", approval: null },
} as WarmQuery;

mountRoot();

async function showChanges(...states: object[]): Promise<string> {
  const events = states.map((AfterState, index) => ({ RecordID: String(9 - index), EntityID: "q", AfterState }));
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response(JSON.stringify(events)));
  await show(<Changes query={DRAFT} />);
  await vi.waitFor(() => expect(root.textContent).toContain("ann@t approved it"));
  return root.textContent ?? "";
}

test("the draft that is decided is compared, also before its change is in the audit log", async () => {
  const text = await showChanges(APPROVED);
  expect(text).toContain("not in the audit log yet");
  expect(text).toContain("cacheSeconds");
  expect(text).toContain("long, default 6");
});

test("a draft whose change is in the audit log gets no warning", async () => {
  const parameters = [{ default: 6, name: "n", type: "long" }];
  const text = await showChanges({ ...STATE, cacheSeconds: 77, parameters, approval: null }, APPROVED);
  expect(text).not.toContain("not in the audit log yet");
  expect(text).toContain("long, default 6");
  expect(text).not.toContain("lookup");
});

test("a recorded change that is older than a field of the query is not reported as missing", async () => {
  const parameters = [{ default: 6, name: "n", type: "long" }];
  const { cacheSeconds: _, ...early } = STATE;
  const text = await showChanges({ ...early, parameters, approval: null }, APPROVED);
  expect(text).not.toContain("not in the audit log yet");
});
