import { expect, test, vi } from "vitest";
import { formatTicks } from "../src/components/chartTimes.ts";
import { buildPlotOptions, chooseSpace, type PlotHandlers } from "../src/components/plot/plotOptions.ts";

/** Widest digit of the 12 px font, in pixels. */
const DIGIT = 7.6;

test("the labels of time marks do not overlap, also with milliseconds", () => {
  const at = Date.parse("2026-11-23T23:59:58Z") / 1000;
  const width = (step: number) => DIGIT * (formatTicks([at, at + step], step)[1]?.split("\n")[0]?.length ?? 0);
  expect(chooseSpace(4, 800)).toBeGreaterThan(width(0.25));
  // Two of the eight characters are colons, which are half as wide as digits.
  expect(chooseSpace(60, 800)).toBeGreaterThan(width(5) - DIGIT);
});

test("the label of the last tick fits, even at the right end of the axis", () => {
  vi.stubGlobal("getComputedStyle", () => ({ getPropertyValue: () => "" }));
  const look = { names: ["a"], marks: new Set<number>(), unit: "", limits: undefined, height: 100 };
  const box = { clientWidth: 400 } as HTMLElement;
  const { padding } = buildPlotOptions(box, look as never, { isHidden: () => false } as unknown as PlotHandlers);
  const seconds = Date.parse("2026-11-23T23:59:59Z") / 1000;
  const labels = [1, 60, 3600, 86_400].flatMap((step) => formatTicks([seconds - step, seconds], step));
  const widest = Math.max(...labels.flatMap((label) => label.split("\n")).map((line) => line.length)) * DIGIT;
  expect(padding?.[1]).toBeGreaterThanOrEqual(widest / 2);
  vi.unstubAllGlobals();
});
