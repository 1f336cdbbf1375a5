import { expect, test } from "vitest";
import { isEqual, mergeDrafts } from "../../src/administration/merge.ts";

const BASE = { name: "Rig", enabled: true, devices: ["a"] };

test("fields that one person changed are taken from that person", () => {
  const mine = { ...BASE, name: "Mine" };
  const theirs = { ...BASE, devices: ["b"] };
  expect(mergeDrafts(BASE, mine, theirs)).toEqual({ draft: { ...BASE, name: "Mine", devices: ["b"] }, both: [] });
});

test("fields that both changed keep the user's value and are named", () => {
  const mine = { ...BASE, name: "Mine", enabled: false };
  const theirs = { ...BASE, name: "Theirs", enabled: false };
  expect(mergeDrafts(BASE, mine, theirs)).toEqual({ draft: { ...BASE, name: "Mine", enabled: false }, both: ["name"] });
});

test("without own changes the newer version is taken", () => {
  const theirs = { name: "Theirs", enabled: false, devices: [] };
  expect(mergeDrafts(BASE, BASE, theirs)).toEqual({ draft: theirs, both: [] });
  expect(isEqual(["a", "b"], ["a", "b"])).toBe(true);
  expect(isEqual(["a", "b"], ["b", "a"])).toBe(false);
});
