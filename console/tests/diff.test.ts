import { expect, test } from "vitest";
import { diff } from "../src/components/diff.ts";

function changes(before: unknown, after: unknown): string[] {
  return diff(before, after).map((field) => `${field.change} ${field.path.join("/")}`);
}

test("fields are told apart by what happened to them", () => {
  expect(changes({ a: 1, b: 2, c: 3 }, { a: 1, b: 3, d: 4 })).toEqual(["same a", "changed b", "removed c", "added d"]);
});

test("nested objects and arrays are compared field by field", () => {
  expect(changes({ a: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 3 }, 4] } })).toEqual([
    "same a/b/[0]",
    "changed a/b/[1]/c",
    "added a/b/[2]",
  ]);
});

test("lists of plain values are compared by their elements, not by their positions", () => {
  expect(changes(["list", "get"], ["delete", "list", "get"])).toEqual(["added [0]", "same [1]", "same [2]"]);
  expect(changes(["a", "b", "c"], ["b", "c", "d"])).toEqual(["removed [0]", "same [0]", "same [1]", "added [2]"]);
  expect(changes([1, 2, 3], [1, 5, 3])).toEqual(["same [0]", "changed [1]", "same [2]"]);
  expect(diff(["a", "b"], ["b"])[0]).toEqual({ path: ["[0]"], change: "removed", before: "a", after: undefined });
  expect(changes([], ["a"])).toEqual(["added [0]"]);
  expect(changes([null, "a"], ["a"])).toEqual(["removed [0]", "same [0]"]);
});

test("a value of another kind is one change", () => {
  expect(changes({ a: { b: 1 } }, { a: [1] })).toEqual(["changed a"]);
  expect(changes({ a: 1 }, { a: "1" })).toEqual(["changed a"]);
  expect(changes({ a: null }, { a: {} })).toEqual(["changed a"]);
});

test("empty and missing states are told", () => {
  expect(changes({}, {})).toEqual(["same "]);
  expect(changes(undefined, { a: 1 })).toEqual(["added "]);
  expect(changes({ a: {} }, { a: {} })).toEqual(["same a"]);
});

test("names of the prototype are names like others", () => {
  expect(changes({}, JSON.parse('{"__proto__": 1, "constructor": 2}'))).toEqual([
    "added __proto__",
    "added constructor",
  ]);
});
