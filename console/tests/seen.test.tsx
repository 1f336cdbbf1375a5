import { render } from "preact";
import { expect, test } from "vitest";
import { CodeBlock } from "../src/components/CodeBlock.tsx";
import { clamped } from "../src/components/clamped.ts";
import { JsonDiff } from "../src/components/JsonDiff.tsx";
import { pieces, seen, unseenIn } from "../src/components/unseen.ts";

const TROJAN = "T | where a == \u202e'x' \u2066// all\u2069";

test("what nobody sees is written out; ends of lines, tabs and letters of any script stay", () => {
  expect(seen(TROJAN)).toBe("T | where a == \\u202e'x' \\u2066// all\\u2069");
  expect(seen("a\u200bb\u0000c\u{e0001}d\u3164")).toBe("a\\u200bb\\u0000c\\u{e0001}d\\u3164");
  expect(seen("Grüße\tעברית\r\n日本 😀")).toBe("Grüße\tעברית\r\n日本 😀");
  expect(seen("a\rb")).toBe("a\\u000db");
});

test("a written-out character is told from the same letters as somebody typed them", () => {
  expect(pieces("\\u202e")).toEqual([{ text: "\\u202e", unseen: false }]);
  expect(pieces("\u202e")).toEqual([{ text: "\\u202e", unseen: true }]);
});

test("a warning names each such character once", () => {
  expect(unseenIn(TROJAN, "\u202e")).toEqual(["\\u202e", "\\u2066", "\\u2069"]);
  expect(unseenIn("T | take 1\n")).toEqual([]);
});

test("code and differences hold no character that nobody sees", () => {
  const box = document.createElement("div");
  render(<CodeBlock code={TROJAN} label="KQL" />, box);
  expect(box.textContent).toContain("\\u202e");
  render(<JsonDiff before={{ "k\u202e": "a" }} after={{ "k\u202e": "\u2066b" }} />, box);
  expect(box.textContent).toContain("\\u2066");
  expect(box.textContent).not.toMatch(/[\u202e\u2066]/u);
});

test("long values show their beginning, and no half of a character", () => {
  expect(clamped("short\ntext")).toBe("short\ntext");
  expect(clamped("x".repeat(3000))).toHaveLength(600);
  expect(clamped("line\n".repeat(100)).split("\n")).toHaveLength(14);
  expect(clamped(`${"x".repeat(599)}😀${"x".repeat(9)}`)).toBe("x".repeat(599));
});
