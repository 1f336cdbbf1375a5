import { expect, test } from "vitest";
import { mergeScopes } from "../src/components/scopeOptions.ts";

test("recent scopes are offered first, and each scope once", () => {
  const listed = [
    { scope: "line-1", records: 12 },
    { scope: "line-2", records: 3 },
    { scope: "", records: 1 },
  ];
  expect(mergeScopes(["line-2", "typed"], listed)).toEqual([
    { scope: "line-2", records: 3 },
    { scope: "typed", records: undefined },
    { scope: "line-1", records: 12 },
  ]);
  expect(mergeScopes([], [])).toEqual([]);
});
