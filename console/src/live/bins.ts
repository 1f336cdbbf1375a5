/** Number of time bins in a window; about one for each pixel of a chart. */
export const BINS = 1200;
/** Further bins after the window, for clocks that are ahead. */
export const AHEAD = 60;
const SLOTS = BINS + AHEAD + 1;

/**
 * Ring of time bins with the lowest and highest value of each. Memory is constant; order and repeated values do not matter.
 */
export class Bins {
  readonly #at = new Float64Array(SLOTS).fill(-1);
  readonly #low = new Float64Array(SLOTS);
  readonly #high = new Float64Array(SLOTS);

  /** Adds a value; ignores it if its slot already contains a newer bin. */
  put(bin: number, value: number): void {
    const slot = bin % SLOTS;
    const held = this.#at[slot] ?? -1;
    if (held < bin) {
      this.#at[slot] = bin;
      this.#low[slot] = value;
      this.#high[slot] = value;
    } else if (held === bin) {
      this.#low[slot] = Math.min(this.#low[slot] ?? value, value);
      this.#high[slot] = Math.max(this.#high[slot] ?? value, value);
    }
  }

  /** Calls back for each non-empty bin of a range, in order, both ends included. */
  each(first: number, last: number, found: (bin: number, low: number, high: number) => void): void {
    for (let bin = Math.max(0, first); bin <= last; bin += 1) {
      const slot = bin % SLOTS;
      if (this.#at[slot] === bin) {
        found(bin, this.#low[slot] ?? Number.NaN, this.#high[slot] ?? Number.NaN);
      }
    }
  }
}
