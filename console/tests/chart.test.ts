import { expect, test } from "vitest";
import { formatTicks } from "../src/components/chartTimes.ts";
import { decimate, findFirst } from "../src/components/plot/decimate.ts";
import { findKeyAction } from "../src/components/plot/keys.ts";
import { getLineStyle, MOST_STYLES } from "../src/components/plot/lineStyles.ts";
import { findEnd, findNextPlace, findReadings } from "../src/components/plot/readings.ts";
import { describeReadings } from "../src/components/plot/Tooltip.tsx";

/** Seconds of an instant in the zone of the machine, so that the test holds anywhere. */
function local(...parts: [number, number, number, number?, number?, number?, number?]): number {
  return new Date(...parts).getTime() / 1000;
}

test("marks of a time axis are as short as their distance lets them be, with each day once", () => {
  const hours = [local(2026, 0, 5, 22), local(2026, 0, 5, 23), local(2026, 0, 6, 0), local(2026, 0, 6, 1)];
  expect(formatTicks(hours, 3600)).toEqual(["22:00\n2026-01-05", "23:00", "00:00\n2026-01-06", "01:00"]);
  expect(formatTicks([local(2026, 0, 5), local(2026, 0, 6)], 86_400)).toEqual(["2026-01-05", "2026-01-06"]);
  expect(formatTicks([local(2026, 0, 5, 8, 0, 5), local(2026, 0, 5, 8, 0, 10)], 5)[1]).toBe("08:00:10");
  expect(formatTicks([local(2026, 0, 5, 8, 0, 5, 500)], 0.5)).toEqual(["08:00:05.500\n2026-01-05"]);
});

const MANY = 100_000;
const TIMES = Array.from({ length: MANY }, (_, index) => index);

test("a hundred thousand points become a few for each pixel, and every extreme stays", () => {
  const line: (number | null)[] = TIMES.map((at) => Math.sin(at / 500));
  line[43_210] = 99;
  line[43_213] = -99;
  line[70_001] = null;
  const started = decimate({ times: TIMES, lines: [line, line] }, [0, MANY - 1], 1000);
  const drawn = started.lines[0] ?? [];
  expect(drawn.length).toBeLessThanOrEqual(3 * 1000 + 2);
  expect([Math.max(...drawn.map(Number)), Math.min(...drawn.map(Number))]).toEqual([99, -99]);
  expect(drawn).toContain(null);
  expect([started.times[0], started.times.at(-1)]).toEqual([0, MANY - 1]);
  expect(started.times).toEqual([...started.times].sort((left, right) => left - right));
});

test("a zoomed range has all its points, and one more at each side", () => {
  const { times } = decimate({ times: TIMES, lines: [TIMES] }, [500.5, 510.5], 1000);
  expect(times).toEqual([500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 512]);
  expect(decimate({ times: [], lines: [[]] }, [0, 1], 100)).toEqual({ times: [], lines: [[]] });
  expect([findFirst([1, 2, 4], 3), findFirst([1, 2, 4], 9), findFirst([], 0)]).toEqual([2, 3, 0]);
});

test("twelve lines have different styles, and the first six differ without colour", () => {
  const styles = Array.from({ length: MOST_STYLES }, (_, index) => getLineStyle(index));
  const plain = styles.map(({ dash, width }) => `${dash.join(" ")}/${width}`);
  expect(new Set(plain).size).toBe(MOST_STYLES);
  expect(getLineStyle(MOST_STYLES)).toEqual(getLineStyle(0));
});

const READ = {
  times: [0, 10, 20, 30],
  lines: [
    [1, undefined, undefined, 4],
    [undefined, 2, null, undefined],
  ],
};

test("the tooltip has the nearest value of each line that is near enough", () => {
  expect(findReadings(READ, 1, 10)).toEqual([
    { line: 0, value: 1 },
    { line: 1, value: 2 },
  ]);
  expect(findReadings(READ, 1, 5)).toEqual([{ line: 1, value: 2 }]);
  expect(findReadings(READ, 9, 5)).toEqual([]);
  expect(describeReadings(0, [{ line: 0, value: 1.5 }], ["supply"], "°C")).toMatch(/00:00; supply 1\.5 °C$/);
});

test("arrow keys move over the places that have values", () => {
  expect([findNextPlace(READ, 1, 1), findNextPlace(READ, 3, 1), findNextPlace(READ, 3, -1)]).toEqual([3, 3, 1]);
  expect([findEnd(READ, "first"), findEnd(READ, "last")]).toEqual([0, 3]);
  expect(findKeyAction("ArrowLeft", [0, 30], [0, 30], 30)).toEqual({ kind: "move", steps: -1 });
  expect(findKeyAction("a", [0, 30], [0, 30], 30)).toBeUndefined();
});

test("plus and minus zoom around the cursor, within the whole range; 0 resets", () => {
  expect(findKeyAction("+", [0, 100], [0, 100], 50)).toEqual({ kind: "zoom", range: [25, 75] });
  expect(findKeyAction("-", [25, 75], [0, 100], 50)).toEqual({ kind: "zoom", range: undefined });
  expect(findKeyAction("-", [0, 10], [0, 100], 0)).toEqual({ kind: "zoom", range: [0, 20] });
  expect(findKeyAction("0", [25, 75], [0, 100], 50)).toEqual({ kind: "zoom", range: undefined });
});
