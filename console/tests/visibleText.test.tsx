import { render } from "preact";
import { expect, test } from "vitest";
import type { AuditScope } from "../src/api/auditScopes.ts";
import { CodeBlock } from "../src/components/CodeBlock.tsx";
import { DataTable } from "../src/components/DataTable.tsx";
import { escapeInvisible, findInvisible, splitPieces } from "../src/components/invisible.ts";
import { JsonDiff } from "../src/components/JsonDiff.tsx";
import { shorten } from "../src/components/shorten.ts";
import { ChainChoice } from "../src/pages/scopes/ChainChoice.tsx";

const TROJAN = "T | where a == \u202e'x' \u2066// all\u2069";

test("what nobody sees is written out; ends of lines, tabs and letters of any script stay", () => {
  expect(escapeInvisible(TROJAN)).toBe("T | where a == \\u202e'x' \\u2066// all\\u2069");
  expect(escapeInvisible("a\u200bb\u0000c\u{e0001}d\u3164")).toBe("a\\u200bb\\u0000c\\u{e0001}d\\u3164");
  expect(escapeInvisible("Grüße\tעברית\r\n日本 😀")).toBe("Grüße\tעברית\r\n日本 😀");
  expect(escapeInvisible("a\rb")).toBe("a\\u000db");
});

test("a written-out character is told from the same letters as somebody typed them", () => {
  expect(splitPieces("\\u202e")).toEqual([{ text: "\\u202e", isInvisible: false }]);
  expect(splitPieces("\u202e")).toEqual([{ text: "\\u202e", isInvisible: true }]);
});

test("names that differ only in spaces look different", () => {
  const seen = (name: string) =>
    splitPieces(name, true)
      .map(({ text }) => text)
      .join("");
  expect(["lead", " lead", "lead ", "a b", "a  b", "a\u00a0b", "a\tb"].map(seen)).toEqual([
    ...["lead", "\\u0020lead", "lead\\u0020", "a b", "a \\u0020b", "a\\u00a0b", "a\\u0009b"],
  ]);
  const box = document.createElement("div");
  const choose = (scopeKey: string) => ({ target: "DomainEvents", scopeKey }) as AuditScope;
  render(<ChainChoice scopes={[choose("lead"), choose(" lead")]} chosen={[]} onChange={() => undefined} />, box);
  expect([...box.querySelectorAll("label")].map((each) => each.textContent)).toContain("Plant events of \\u0020lead");
  const columns = [{ key: "scope", title: "Scope", type: "name", value: (row: string) => row }] as const;
  render(<DataTable label="" columns={columns} rows={[" lead"]} rowKey={(row) => row} />, box);
  expect(box.querySelector("tbody")?.textContent).toBe("\\u0020lead");
});

test("a warning names each such character once", () => {
  expect(findInvisible(TROJAN, "\u202e")).toEqual(["\\u202e", "\\u2066", "\\u2069"]);
  expect(findInvisible("T | take 1\n")).toEqual([]);
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
  expect(shorten("short\ntext")).toBe("short\ntext");
  expect(shorten("x".repeat(3000))).toHaveLength(600);
  expect(shorten("line\n".repeat(100)).split("\n")).toHaveLength(14);
  expect(shorten(`${"x".repeat(599)}😀${"x".repeat(9)}`)).toBe("x".repeat(599));
});
