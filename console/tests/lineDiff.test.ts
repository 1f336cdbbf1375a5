import { expect, test } from "vitest";
import { chooseVisible, diffLines, splitWords } from "../src/components/lineDiff.ts";
import { compareParameters } from "../src/pages/queries/detail/parameterChanges.ts";

/** Formats a comparison: the sign, the line, changed words in brackets. */
function compare(before: string, after: string): string[] {
  return diffLines(before, after).map(({ change, pieces }) => {
    const text = pieces
      .map((piece) => (piece.isChanged && change !== "same" ? `[${piece.text}]` : piece.text))
      .join("");
    return `${{ same: " ", removed: "-", added: "+" }[change]}${text}`;
  });
}

test("changed lines show their changed words", () => {
  expect(compare("T\n| where x > 7\n| count", "T\n| where x > 9\n| count")).toEqual([
    " T",
    "-| where x > [7]",
    "+| where x > [9]",
    " | count",
  ]);
});

test("added, removed and replaced lines are whole", () => {
  expect(compare("a\nb", "a\nnew\nb")).toEqual([" a", "+[new]", " b"]);
  expect(compare("a\nold\nb", "a\nb")).toEqual([" a", "-[old]", " b"]);
  expect(compare("a\nold\nb", "a\nother\nb")).toEqual([" a", "-[old]", "+[other]", " b"]);
  expect(compare("", "x")).toEqual(["-[]", "+[x]"]);
});

test("each line has its number in both texts", () => {
  const numbers = diffLines("a\nb\nc", "a\nx\ny\nc").map(({ before, after }) => [before, after]);
  expect(numbers).toEqual([
    [1, 1],
    [2, undefined],
    [undefined, 2],
    [undefined, 3],
    [3, 4],
  ]);
});

test("words, blanks and signs are told apart in any script", () => {
  expect(splitWords("größe>=10  | 水位_1")).toEqual(["größe", ">", "=", "10", "  ", "|", " ", "水位_1"]);
});

test("only changed lines and those near them are visible", () => {
  const text = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const other = text.with(10, "changed");
  const visible = chooseVisible(diffLines(text.join("\n"), other.join("\n")));
  expect(visible.flatMap((shown, index) => (shown ? [index] : []))).toEqual([7, 8, 9, 10, 11, 12, 13, 14]);
});

test("very long texts are compared without blocking the page", () => {
  const before = Array.from({ length: 5000 }, (_, index) => `old ${index}`).join("\n");
  const after = Array.from({ length: 5000 }, (_, index) => `new ${index}`).join("\n");
  const lines = diffLines(`same\n${before}`, `same\n${after}`);
  expect(lines.filter((line) => line.change === "same")).toHaveLength(1);
  expect(lines).toHaveLength(10_001);
});

test("parameters are compared by name, not by position", () => {
  const before = [
    { name: "gone", type: "int" },
    { name: "least", type: "long", default: 5 },
    { name: "kept", type: "string", default: "" },
  ];
  const after = [
    { name: "kept", type: "string", default: "" },
    { name: "least", type: "real", default: 5 },
    { name: "new", type: "bool", default: null },
  ];
  expect(compareParameters(before, after)).toEqual([
    { name: "kept", change: "unchanged", before: 'string, default ""', after: 'string, default ""' },
    { name: "least", change: "changed", before: "long, default 5", after: "real, default 5" },
    { name: "new", change: "added", before: "", after: "bool, default null" },
    { name: "gone", change: "removed", before: "int, required", after: "" },
  ]);
  expect(compareParameters(undefined, [])).toEqual([]);
});
