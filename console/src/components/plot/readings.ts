// The values of a chart at the cursor.
import type { Point } from "@/live/view.ts";
import type { PlotData } from "./decimate.ts";

/** The value of a line nearest to the cursor. */
export interface Reading {
  /** Place of the line, from 0. */
  line: number;
  value: number;
}

/**
 * Returns the value of each line that is nearest to a moment, if one is near enough.
 * @param index place of the moment in the times
 * @param tolerance largest distance in seconds
 */
export function findReadings({ times, lines }: PlotData, index: number, tolerance: number): Reading[] {
  const at = times[index];
  if (at === undefined) {
    return [];
  }
  return lines.flatMap((line, place) => {
    const nearest = findNearest(times, line, index, tolerance);
    return nearest === undefined ? [] : [{ line: place, value: line[nearest] as number }];
  });
}

function findNearest(
  times: readonly number[],
  line: readonly Point[],
  index: number,
  tolerance: number,
): number | undefined {
  const at = times[index] ?? 0;
  for (let step = 0; ; step += 1) {
    const [before, after] = [index - step, index + step];
    const near = [before, after].filter((place) => Math.abs((times[place] ?? Number.NaN) - at) <= tolerance);
    const found = near.find((place) => typeof line[place] === "number");
    if (found !== undefined || near.length === 0) {
      return found;
    }
  }
}

/** Returns the next place with a value in some line, in a direction; the same place at the end. */
export function findNextPlace({ times, lines }: PlotData, index: number, direction: 1 | -1): number {
  for (let place = index + direction; place >= 0 && place < times.length; place += direction) {
    if (lines.some((line) => typeof line[place] === "number")) {
      return place;
    }
  }
  return index;
}

/** Returns the first place with a value, seen from one end. */
export function findEnd(data: PlotData, end: "first" | "last"): number {
  return end === "first" ? findNextPlace(data, -1, 1) : findNextPlace(data, data.times.length, -1);
}
