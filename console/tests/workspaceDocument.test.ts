import { expect, test } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import type { Plan } from "../src/api/workspaceDocument.ts";
import { findVisibleLines } from "../src/components/textPlaces.ts";
import {
  countWords,
  describeKind,
  readDocumentFile,
  summarizePlan,
  toTextErrors,
} from "../src/pages/document/planning.ts";

function createPlan(...actions: ("added" | "changed" | "removed")[]): Plan {
  const changes = actions.map((action) => ({ action, kind: "surface", key: "a", before: null, after: null }));
  return { changes, kept: [], planTag: '"1"' };
}

test("a plan is summarized by its actions", () => {
  expect(summarizePlan(createPlan())).toBe("no changes");
  expect(summarizePlan(createPlan("removed", "added", "added"))).toBe("2 added, 1 removed");
});

test("kinds and counts are written in words", () => {
  expect(describeKind("warmQuery")).toBe("warm query");
  expect(countWords(1, "change")).toBe("1 change");
  expect(countWords(1200, "change")).toBe("1,200 changes");
});

test("errors of a document have their positions", () => {
  const errors = [
    { field: "surfaces[0].lookup", message: "is invalid", line: 3, column: 5 },
    { field: "body", message: "is not valid YAML", line: 1, column: 2 },
    { field: "team", message: "is missing" },
  ];
  expect(toTextErrors(new ApiError({ status: 400, code: "INVALID_REQUEST", detail: "", errors }))).toEqual([
    { message: "surfaces[0].lookup is invalid", place: { line: 3, column: 5 } },
    { message: "is not valid YAML", place: { line: 1, column: 2 } },
    { message: "team is missing", place: undefined },
  ]);
  expect(toTextErrors(new ApiError({ status: 409, code: "LAST_ADMINISTRATOR", detail: "", errors }))).toEqual([]);
});

test("a file is read as UTF-8 and must be text", async () => {
  expect(await readDocumentFile(new File(["workspace: {name: Ä}"], "a.yaml"))).toBe("workspace: {name: Ä}");
  await expect(readDocumentFile(new File([new Uint8Array([0xff, 0xfe])], "b.yaml"))).rejects.toThrow("UTF-8");
});

test("only the visible lines of a long text are drawn", () => {
  expect(findVisibleLines(0, 400, 20, 5)).toEqual({ start: 0, end: 5 });
  expect(findVisibleLines(20_000, 400, 20, 100_000)).toEqual({ start: 990, end: 1080 });
});
