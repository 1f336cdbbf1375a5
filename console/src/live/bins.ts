/** Stretches of time that a window is divided into; about as many as a chart has pixels. */
export const BINS = 1200;
/** Beyond those of the window, for clocks that are ahead. */
export const AHEAD = 60;
const SLOTS = BINS + AHEAD + 1;

/**
 * The lowest and the highest value of each of the last stretches of time, in a ring. However many values come, it takes
 * the same memory; their order does not matter, and one that comes twice changes nothing.
 */
export class Bins {
  readonly #at = new Float64Array(SLOTS).fill(-1);
  readonly #low = new Float64Array(SLOTS);
  readonly #high = new Float64Array(SLOTS);

  /** Takes a value in; one that is older than what its slot holds is left out. */
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

  /** Calls back for each bin of a range that holds something, both ends included, in order. */
  each(first: number, last: number, found: (bin: number, low: number, high: number) => void): void {
    for (let bin = Math.max(0, first); bin <= last; bin += 1) {
      const slot = bin % SLOTS;
      if (this.#at[slot] === bin) {
        found(bin, this.#low[slot] ?? Number.NaN, this.#high[slot] ?? Number.NaN);
      }
    }
  }
}
