import { expect, test } from "vitest";
import { formatLegendTime, formatTicks } from "../src/components/chartTimes.ts";

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

test("the legend tells the whole instant, or a dash where the pointer is nowhere", () => {
  expect(formatLegendTime(local(2026, 0, 5, 8, 0, 5))).toBe("2026-01-05 08:00:05");
  expect(formatLegendTime(null)).toBe("–");
});
