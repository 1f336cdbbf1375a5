import { describe, expect, it } from "vitest";
import { findChangedFields } from "@/proof/changes.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";

describe("JSON that people type", () => {
  it("is read when it is an object", () => {
    const text = '{"a": [1, 2.5, -3e2, {"b": "x\\"y: {"}], "c": null, "ü": true}';
    expect(readObject(text).value).toEqual({ a: [1, 2.5, -300, { b: 'x"y: {' }], c: null, ü: true });
    expect(readObject(writeObject({ a: 1 })).value).toEqual({ a: 1 });
    expect(readObject(writeObject(null)).value).toEqual({});
  });

  it.each([
    ["", "Enter a JSON object"],
    ["[1]", "Enter a JSON object"],
    ["null", "Enter a JSON object"],
    ["{", "not JSON"],
    ['{"a": 1,}', "not JSON"],
    ['{"a": 9007199254740993}', "too large for an exact JSON integer"],
    ['{"a": [{"b": -9007199254740992}]}', "too large for an exact JSON integer"],
    ['{"a": 1e999}', "too large for a JSON number"],
    ['{"a": 1, "b": {"a": 2}, "a": 3}', "occurs twice"],
    ['{"a": 1, "\\u0061": 2}', "occurs twice"],
    ['{"a": ["\\ud800"]}', "half a character"],
    ['{"\\udc00": 1}', "half a character"],
  ])("%s is refused", (text, why) => {
    expect(readObject(text).problem).toContain(why);
  });

  it("may repeat a name in another object, and digits and names in text", () => {
    const text =
      '{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}], "c": "9007199254740993", "d": ["a", "a"], "e": 1e3, "f": "\\ud83d\\ude00"}';
    expect(readObject(text).problem).toBeUndefined();
  });
});

describe("changed fields", () => {
  it("are the members that differ, whatever their order inside", () => {
    const before = { same: { x: 1, y: 2 }, other: 1, gone: null, list: [1, 2] };
    const after = { same: { y: 2, x: 1 }, other: "1", list: [2, 1], added: false };
    expect(findChangedFields(before, after)).toEqual(["other", "gone", "list", "added"]);
    expect(findChangedFields(before, before)).toEqual([]);
  });

  it("tell an absent member from null, and take any name", () => {
    expect(findChangedFields({}, { a: null })).toEqual(["a"]);
    expect(findChangedFields(JSON.parse('{"__proto__": 1}'), {})).toEqual(["__proto__"]);
    expect(findChangedFields({}, { toString: 1 })).toEqual(["toString"]);
  });
});
