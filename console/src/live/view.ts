import { BINS } from "./bins.ts";
import type { Series } from "./history.ts";

/** A value; null for a missing value, undefined where none is expected. */
export type Point = number | null | undefined;

/** Returns the indexes of values without neighbours; each is drawn as a point. */
export function findIsolated(values: readonly Point[]): number[] {
  const due = [...values.entries()].filter(([, value]) => value !== undefined);
  return due
    .filter(([, value], at) => value !== null && due[at - 1]?.[1] == null && due[at + 1]?.[1] == null)
    .map(([place]) => place);
}

const SHORTEST_GAP_MS = 10_000;
const MISSED = 4;

/**
 * Data of a chart: the window up to a moment, two points a bin, so that short peaks stay visible. The arrays are reused.
 */
export class View {
  /** Seconds since 1970, for all series. */
  readonly times: number[] = new Array<number>(BINS * 2).fill(0);
  readonly values: Point[][];

  /** @param width milliseconds of a bin */
  constructor(
    readonly series: readonly Series[],
    readonly width: number,
  ) {
    this.values = series.map(() => new Array<Point>(BINS * 2).fill(undefined));
  }

  /** Fills the arrays with the window that ends now. */
  fill(now: number): void {
    const last = Math.floor(now / this.width);
    const first = last - BINS + 1;
    for (let index = 0; index < BINS; index += 1) {
      const at = ((first + index) * this.width) / 1000;
      this.times[index * 2] = at;
      this.times[index * 2 + 1] = at + this.width / 2000;
    }
    for (const [index, series] of this.series.entries()) {
      this.#draw(series, this.values[index] ?? [], first, last);
    }
  }

  #draw(series: Series, values: Point[], first: number, last: number): void {
    values.fill(undefined);
    const silence = Math.max(SHORTEST_GAP_MS, series.interval * MISSED) / this.width;
    let before: number | undefined;
    series.bins.each(first, last, (bin, low, high) => {
      const place = (bin - first) * 2;
      if (before !== undefined && bin - before > Math.max(silence, 2)) {
        values[(before + 1 - first) * 2] = null;
      }
      values[place] = low;
      if (high !== low) {
        values[place + 1] = high;
      }
      before = bin;
    });
  }
}
