import { expect, test } from "vitest";
import type { Download } from "../src/api/downloads.ts";
import { choosePause } from "../src/components/jobs.ts";
import { createRangeUpToNow } from "../src/pages/downloads/ranges.ts";

function job(status: Download["status"], rows: number): Download {
  const progress = { connectionsDone: 0, connectionsTotal: 1, rows };
  return { downloadId: "d", status, progress, files: [] as Download["files"] } as Download;
}

test("a download that gets on is looked at soon, one that does not later and later", () => {
  const waits: number[] = [];
  let waited = choosePause({ data: [job("running", 1)], before: [job("running", 0)], failed: false, waited: 0 });
  expect(waited).toBe(1000);
  for (let turn = 0; turn < 12; turn += 1) {
    waited = choosePause({ data: [job("running", 1)], before: [job("running", 1)], failed: false, waited });
    waits.push(waited);
  }
  expect(waits).toEqual([...waits].sort((left, right) => left - right));
  expect(waits.at(-1)).toBe(15_000);
  expect(choosePause({ data: [job("running", 2)], before: [job("running", 1)], failed: false, waited })).toBe(1000);
});

test("downloads that ended are fetched again before their links end, and a failure slows down", () => {
  const done = choosePause({ data: [job("completed", 1)], before: undefined, failed: false, waited: 0 });
  expect(done).toBeGreaterThan(60_000);
  expect(done).toBeLessThan(15 * 60_000);
  expect(choosePause({ data: undefined, before: undefined, failed: true, waited: 4000 })).toBeGreaterThan(4000);
});

test("a preset ends with the minute that begins next and is as long as it says", () => {
  const now = new Date("2026-03-28T10:20:30.500Z");
  const range = createRangeUpToNow(24, now);
  expect(new Date(range.end).getTime()).toBe(Date.parse("2026-03-28T10:21:00Z"));
  expect(new Date(range.end).getTime() - new Date(range.start).getTime()).toBe(24 * 3_600_000);
});
