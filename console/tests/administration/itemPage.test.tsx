// The page of an item after a conflict with another person's change.
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../../src/api/problem.ts";
import { RulePage } from "../../src/pages/alerts/RulePage.tsx";
import { SurfacePage } from "../../src/pages/surfaces/SurfacePage.tsx";
import { MemberPage } from "../../src/pages/team/MemberPage.tsx";
import { session } from "../../src/session/index.ts";
import { signIn } from "../amendments/pages.ts";
import { findButton, mountRoot, press, root, show, submit, typeText } from "../mounted.ts";

const SURFACE = {
  etag: '"1"',
  editedBy: "ann@t",
  updatedAt: null,
  lookup: "s",
  name: "Old name",
  connections: [],
  queries: [],
};
const MEMBER = {
  ...{ etag: '"1"', editedBy: "ann@t", updatedAt: null, id: "eve@t", name: "Eve", role: "Viewer" },
  ...{ rights: [], enabled: true, service: false, oid: null, accessRights: [] },
};

const RULE = {
  ...{ etag: '"1"', lookup: "r", name: "R", severity: "info", enabled: true, surface: "s", kind: "threshold" },
  ...{ every: "PT1M", for: "PT0S", query: "q", parameters: {}, state: "ok", error: null, lastEvaluatedAt: null },
  ...{ nextEvaluationAt: null, editedBy: null, updatedAt: null },
  condition: { column: "n", operator: "gt", value: 1 },
};
const RIGHTS = ["Catalog.Manage", "Team.Manage", "Keys.Manage", "Alert.Manage"];

beforeEach(() => signIn(RIGHTS.map((right) => `Workspace.${right}`)));

mountRoot();

/** Shows an item, and saves a change, to which the service replies with an error. */
async function failToSave(page: preact.ComponentChild, item: object, status: number, code: string): Promise<void> {
  vi.spyOn(session.api, "get").mockResolvedValue(item);
  vi.spyOn(session.api, "put").mockRejectedValue(new ApiError({ status, code, detail: "" }));
  await show(page);
  await vi.waitFor(() => expect(root.querySelector("form")).not.toBeNull());
  await typeText("Mine");
  await submit();
}

test("a reload after a conflict updates the title and the latest change, too", async () => {
  await failToSave(<SurfacePage lookup="s" />, SURFACE, 412, "PRECONDITION_FAILED");
  await vi.waitFor(() => expect(findButton("Reload")).toBeDefined());
  const newer = { ...SURFACE, etag: '"2"', editedBy: "bob@t", name: "New name" };
  vi.spyOn(session.api, "get").mockResolvedValue(newer);
  await press("Reload");
  await vi.waitFor(() => expect(root.querySelector("h1")?.textContent).toBe("New name"));
  expect(root.textContent).toContain("Last changed by bob@t");
});

/** Saves a change of an item that another person removed, and reloads it. */
async function findRemoved(page: preact.ComponentChild, item: object, noun: string): Promise<void> {
  await failToSave(page, item, 412, "PRECONDITION_FAILED");
  await vi.waitFor(() => expect(findButton("Reload")).toBeDefined());
  vi.spyOn(session.api, "get").mockRejectedValue(new ApiError({ status: 404, code: "NOT_FOUND", detail: "" }));
  await press("Reload");
  await vi.waitFor(() => expect(root.textContent).toContain(`Another person removed this ${noun}`));
}

test("an item that another person removed has no button to remove it, and no latest change", async () => {
  await findRemoved(<SurfacePage lookup="s" />, SURFACE, "surface");
  expect(findButton("Remove")).toBeUndefined();
  expect(root.textContent).not.toContain("Last changed by");
});

test("a removed rule cannot be evaluated", async () => {
  vi.spyOn(session.api, "fetch").mockImplementation(async () => Response.json({ warmQueries: [] }));
  await findRemoved(<RulePage lookup="r" />, RULE, "rule");
  expect(findButton("Evaluate")).toBeUndefined();
});

test("a removed member gets no API key", async () => {
  await findRemoved(<MemberPage id="eve@t" />, MEMBER, "member");
  expect(root.textContent).not.toContain("Create an API key");
});

test("a change of a removed member reports the removal, and does not ask for another ID", async () => {
  await failToSave(<MemberPage id="eve@t" />, MEMBER, 409, "MEMBER_ID_RETIRED");
  await vi.waitFor(() => expect(root.textContent).toContain("Another person removed this member"));
  expect(root.textContent).not.toContain("another ID");
  expect(findButton("Save")?.disabled).toBe(true);
});

test("a disabling of a removed member shows that the member does not exist", async () => {
  const get = vi.spyOn(session.api, "get").mockResolvedValue(MEMBER);
  vi.spyOn(session.api, "put").mockRejectedValue(new ApiError({ status: 409, code: "MEMBER_ID_RETIRED", detail: "" }));
  await show(<MemberPage id="eve@t" />);
  await vi.waitFor(() => expect(findButton("Disable")).toBeDefined());
  await press("Disable");
  get.mockRejectedValue(new ApiError({ status: 404, code: "MEMBER_NOT_FOUND", detail: "" }));
  await press("Disable the member");
  await vi.waitFor(() => expect(root.textContent).toContain("“eve@t” does not exist"));
  expect(root.querySelector("dialog")).toBeNull();
});
