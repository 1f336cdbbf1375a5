import { expect, test } from "vitest";
import { resize } from "../src/components/ColumnHandle.tsx";
import { filterRows } from "../src/components/columnFilters.ts";
import { type Column, sortRows, toggleSorting } from "../src/components/columns.ts";
import { computeSlice, scrollToShow } from "../src/components/virtual.ts";

const ROW = 32;
const VIEW = 560;

test("wherever one scrolls, what is seen is drawn, the whole keeps its height, and few rows are there", () => {
  const count = 10_000;
  for (let top = 0; top <= count * ROW - VIEW; top += 977) {
    const { start, end, before, after } = computeSlice(count, ROW, top, VIEW);
    expect(start * ROW).toBeLessThanOrEqual(top);
    expect(end * ROW).toBeGreaterThanOrEqual(top + VIEW);
    expect(before + (end - start) * ROW + after).toBe(count * ROW);
    expect(end - start).toBeLessThan(60);
  }
});

test.each([0, 1, 17, 18, 25, 26])("%i rows are never more or fewer than there are", (count) => {
  for (const top of [0, 32, 5000]) {
    const { start, end, before, after } = computeSlice(count, ROW, top, VIEW);
    expect(start).toBeGreaterThanOrEqual(0);
    expect(end).toBeLessThanOrEqual(count);
    expect(before + (end - start) * ROW + after).toBe(count * ROW);
  }
});

test("a row is brought into view with the least scrolling", () => {
  expect(scrollToShow(3, ROW, 0, VIEW, 33)).toBe(0);
  expect(scrollToShow(3, ROW, 500, VIEW, 33)).toBe(96);
  expect(scrollToShow(100, ROW, 0, VIEW, 33)).toBe(101 * ROW - (VIEW - 33));
});

interface Row {
  n: number | null;
  t: string;
}

const COLUMNS: Column<Row>[] = [
  { key: "n", title: "N", type: "number", value: (row) => row.n },
  { key: "t", title: "T", value: (row) => row.t },
];

test("numbers sort as numbers, texts as people do, and what is missing stays last", () => {
  const rows = [10, null, 9, 100].map((n) => ({ n, t: `rig-${n}` }));
  const numbers = (direction: "ascending" | "descending") =>
    sortRows(rows, COLUMNS, { key: "n", direction }).map((row) => row.n);
  expect(numbers("ascending")).toEqual([9, 10, 100, null]);
  expect(numbers("descending")).toEqual([100, 10, 9, null]);
  const texts = sortRows(rows.slice(0, 1).concat(rows.slice(2)), COLUMNS, { key: "t", direction: "ascending" });
  expect(texts.map((row) => row.t)).toEqual(["rig-9", "rig-10", "rig-100"]);
  expect(sortRows(rows, COLUMNS)).toBe(rows);
});

test("a head sorts up, down, then not at all", () => {
  const up = toggleSorting("n");
  const down = toggleSorting("n", up);
  expect([up?.direction, down?.direction, toggleSorting("n", down)]).toEqual(["ascending", "descending", undefined]);
  expect(toggleSorting("t", down)).toEqual({ key: "t", direction: "ascending" });
});

const MIXED: Column<Record<string, unknown>>[] = [
  { key: "n", title: "N", type: "number", value: (row) => row.n },
  { key: "t", title: "T", value: (row) => row.t },
  { key: "at", title: "At", type: "time", value: (row) => row.at },
  { key: "j", title: "J", type: "json", value: (row) => row.j },
];
const VALUES = [
  { n: 5, t: "Chiller 1", at: new Date(2026, 0, 5, 8).toISOString(), j: { state: "running" } },
  { n: 12_000, t: "Filler", at: new Date(2026, 0, 6, 9).toISOString(), j: null },
  { n: null, t: "chiller 2", at: null, j: [1] },
];

test.each([
  [{ t: "chill" }, [0, 2]],
  [{ t: "= filler" }, [1]],
  [{ n: "> 5" }, [1]],
  [{ n: "<=5" }, [0]],
  [{ n: "12,000" }, [1]],
  [{ n: "!= 5" }, [1, 2]],
  [{ n: ">" }, [0, 1, 2]],
  [{ n: "> x" }, []],
  [{ at: "< 2026-01-06" }, [0]],
  [{ at: "2026-01-06 09" }, [1]],
  [{ j: "running" }, [0]],
  [{ t: "chill", n: "5" }, [0]],
  [{ t: "  " }, [0, 1, 2]],
] as [Record<string, string>, number[]][])("the filters %j leave the rows %j", (filters, places) => {
  const found = filterRows(VALUES, MIXED, new Map(Object.entries(filters)));
  expect(found.map((row) => VALUES.indexOf(row as (typeof VALUES)[number]))).toEqual(places);
});

test.each([
  ["> 2026-01-05 08:00:00.5", [".900001Z"]],
  ["= 2026-01-05 08:00:00.900001", [".900001Z"]],
  ["<= 2026-01-05 08:00:00.000", ["Z"]],
  ["= 2026-01-05 08:00:00", ["Z", ".100Z", ".900001Z"]],
])("the filter %s compares fractions of a second", (filter, ends) => {
  const second = new Date(2026, 0, 5, 8).toISOString().slice(0, 19);
  const rows = ["Z", ".100Z", ".900001Z"].map((end) => ({ at: second + end }));
  const found = filterRows(rows, MIXED, new Map([["at", filter]]));
  expect(found.map((row) => String(row.at).slice(19))).toEqual(ends);
});

test("a column changes its width, the others keep theirs, and none disappears", () => {
  const widths = new Map([
    ["a", 100],
    ["b", 80],
  ]);
  expect([...resize(widths, "a", 20)]).toEqual([
    ["a", 120],
    ["b", 80],
  ]);
  expect(resize(widths, "b", -500).get("b")).toBeGreaterThan(20);
});

const LARGE = ["9007199254740993", 9007199254740992, "9007199254740995", 5, 1e300];

test.each([
  ["> 9007199254740993", [2, 4]],
  ["= 9007199254740993", [0]],
  ["!= 9,007,199,254,740,992", [0, 2, 3, 4]],
  ["= 1e300", [4]],
])("the filter %s compares whole numbers beyond 2^53 with all their digits", (filter, places) => {
  const rows = LARGE.map((n) => ({ n }));
  const found = filterRows(rows, MIXED, new Map([["n", filter]]));
  expect(found.map((row) => LARGE.indexOf(row.n as number))).toEqual(places);
});

test("whole numbers beyond 2^53 sort by all their digits", () => {
  const rows = LARGE.map((n) => ({ n }));
  const sorted = sortRows(rows, MIXED, { key: "n", direction: "ascending" }).map((row) => row.n);
  expect(sorted).toEqual([5, 9007199254740992, "9007199254740993", "9007199254740995", 1e300]);
});
