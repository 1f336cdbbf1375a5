import { expect, test } from "vitest";
import type { Alert } from "../src/api/alerts.ts";
import { INCOMPLETE, INCOMPLETE_ERROR } from "../src/components/dateFields.ts";
import { ALL, BETWEEN, checkRange, createRange, resolveRange } from "../src/components/pastRanges.ts";
import { filterByStart, reachesBefore } from "../src/pages/alerts/alertTimes.ts";

const NOW = Date.parse("2026-05-04T12:00:00Z");
const NOON = NOW / 1000;

test("a preset ends now, and all times begin at 0", () => {
  expect(resolveRange(createRange("3600"), NOW)).toEqual({ from: NOON - 3600, to: NOON });
  expect(resolveRange(createRange(ALL), NOW)).toEqual({ from: 0, to: NOON });
});

test("an absolute range begins with the last day and follows its fields", () => {
  const range = createRange(BETWEEN, NOW);
  expect(range).toEqual({ preset: BETWEEN, from: "2026-05-03T12:00:00.000Z", to: "2026-05-04T12:00:00.000Z" });
  const entered = { ...range, from: "2026-05-01T00:00:00Z", to: "2026-05-01T01:00:00Z" };
  const { from, to } = resolveRange(entered, NOW);
  expect(to - from).toBe(3600);
  expect(resolveRange({ ...range, to: "" }, NOW).to).toBe(NOON);
});

test("a range that ends before it begins is refused", () => {
  const range = { preset: BETWEEN, from: "2026-05-02T00:00:00Z", to: "2026-05-01T00:00:00Z" };
  expect(checkRange(range, NOW)).toBe("From must be before To.");
  expect(checkRange(createRange("3600"), NOW)).toBeUndefined();
});

test("a range with an incomplete date is refused", () => {
  const range = createRange(BETWEEN, NOW);
  expect(checkRange({ ...range, from: INCOMPLETE }, NOW)).toBe(INCOMPLETE_ERROR);
  expect(checkRange({ ...range, to: INCOMPLETE }, NOW)).toBe(INCOMPLETE_ERROR);
});

test("alerts are filtered by their start, which is included; the end is not", () => {
  const alerts = [4, 3, 2, 1].map((hour) => ({ startedAt: `2026-05-04T0${hour}:00:00Z` }) as Alert);
  const at = (hour: number) => Date.parse(`2026-05-04T0${hour}:00:00Z`) / 1000;
  expect(filterByStart(alerts, at(2), at(4))).toEqual(alerts.slice(1, 3));
  expect(reachesBefore(alerts, at(2))).toBe(true);
  expect(reachesBefore(alerts, at(1))).toBe(false);
  expect(reachesBefore([], at(1))).toBe(false);
});
