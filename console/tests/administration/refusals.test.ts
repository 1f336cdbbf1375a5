import { expect, test } from "vitest";
import { explainRefusal } from "../../src/administration/refusals.ts";
import { ApiError } from "../../src/api/index.ts";

function createError(status: number, code: string, members: Record<string, unknown> = {}): ApiError {
  return new ApiError({ status, code, detail: "detail", members });
}

test("an item in use links to its users", () => {
  const used = explainRefusal(createError(409, "CONNECTION_IN_USE", { usedBy: ["cooling", "a b"] }));
  expect(used?.blockers).toEqual([
    { name: "cooling", href: "#/surfaces/cooling" },
    { name: "a b", href: "#/surfaces/a%20b" },
  ]);
  const surface = createError(409, "SURFACE_IN_USE", { usedBy: ["q", "q"], alertRules: ["q"] });
  expect(explainRefusal(surface)?.blockers.map(({ href }) => href)).toEqual(["#/queries/q", "#/alerts/q"]);
});

test("rights that are not held are named", () => {
  const accessRights = ["Workspace.Keys.Manage"];
  expect(explainRefusal(createError(403, "RIGHT_NOT_HELD", { accessRights }))?.rights).toEqual(accessRights);
  const lost = createError(403, "ACCESS_RIGHT_MISSING", { accessRight: "Workspace.Team.Manage" });
  expect(explainRefusal(lost)?.rights).toEqual(["Workspace.Team.Manage"]);
});

test("other errors need no explanation, and missing members do no harm", () => {
  expect(explainRefusal(createError(400, "INVALID_REQUEST"))).toBeUndefined();
  expect(explainRefusal(new Error("offline"))).toBeUndefined();
  expect(explainRefusal(createError(409, "SURFACE_IN_USE"))?.blockers).toEqual([]);
});
