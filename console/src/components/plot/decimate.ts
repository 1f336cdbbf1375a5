// Reduction of long lines to what a screen can show.
import type { Point } from "@/live/view.ts";

/** Times in seconds, ascending, and the values of each line at these times. */
export interface PlotData {
  times: readonly number[];
  lines: readonly (readonly Point[])[];
}

/** An interval of time, in seconds since 1970. */
export type Range = readonly [from: number, to: number];

const POINTS_PER_PIXEL = 4;

/**
 * Reduces lines to the points of a range, and to a few for each pixel: the lowest and the highest value of each line
 * within the pixel, and its gaps. The points next to the range remain, so that lines continue to the edge.
 */
export function decimate({ times, lines }: PlotData, [from, to]: Range, pixels: number): PlotData {
  const start = Math.max(0, findFirst(times, from) - 1);
  const end = Math.min(times.length, findFirst(times, to) + 2);
  if (end - start <= Math.max(1, pixels) * POINTS_PER_PIXEL) {
    return pick({ times, lines }, (add) => addRange(start, end, add));
  }
  const width = (to - from) / Math.max(1, pixels);
  return pick({ times, lines }, (add) => {
    add(start);
    for (let first = start; first < end; ) {
      const limit = from + (Math.floor(((times[first] ?? 0) - from) / width) + 1) * width;
      const last = Math.max(first + 1, Math.min(end, findFirst(times, limit)));
      for (const line of lines) {
        addExtremes(line, first, last, add);
      }
      first = last;
    }
    add(end - 1);
  });
}

/** Returns the index of the first time at or after a moment. */
export function findFirst(times: readonly number[], at: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function addRange(start: number, end: number, add: (index: number) => void): void {
  for (let index = start; index < end; index += 1) {
    add(index);
  }
}

/** Adds the places of the lowest and highest value, and of the first gap, of a line within a pixel. */
function addExtremes(line: readonly Point[], first: number, last: number, add: (index: number) => void): void {
  let [lowest, highest, gap] = [-1, -1, -1];
  for (let index = first; index < last; index += 1) {
    const value = line[index];
    if (typeof value === "number") {
      lowest = value < (line[lowest] ?? Number.POSITIVE_INFINITY) ? index : lowest;
      highest = value > (line[highest] ?? Number.NEGATIVE_INFINITY) ? index : highest;
    }
    gap = value === null && gap < 0 ? index : gap;
  }
  for (const index of [lowest, highest, gap].filter((place) => place >= 0)) {
    add(index);
  }
}

function pick(data: PlotData, choose: (add: (index: number) => void) => void): PlotData {
  const chosen = new Set<number>();
  choose((index) => {
    if (index >= 0 && index < data.times.length) {
      chosen.add(index);
    }
  });
  const places = [...chosen].sort((left, right) => left - right);
  return {
    times: places.map((index) => data.times[index] ?? 0),
    lines: data.lines.map((line) => places.map((index) => line[index])),
  };
}
