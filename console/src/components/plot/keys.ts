// The keys of a chart.
import type { Range } from "./decimate.ts";

/** The effect of a key: a move of the cursor, or another visible range. */
export type KeyAction =
  | { kind: "move"; steps: number }
  /** `range` is undefined for the whole range. */
  | { kind: "zoom"; range: Range | undefined };

const STEPS: Record<string, number> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  PageUp: -10,
  PageDown: 10,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};
const FACTORS: Record<string, number> = { "+": 0.5, "=": 0.5, "-": 2 };

/**
 * Returns the effect of a key; undefined for other keys.
 * @param range the visible range
 * @param whole the range without zoom
 * @param at the moment around which to zoom
 */
export function findKeyAction(key: string, range: Range, whole: Range, at: number): KeyAction | undefined {
  const steps = STEPS[key];
  if (steps !== undefined) {
    return { kind: "move", steps };
  }
  if (key === "0") {
    return { kind: "zoom", range: undefined };
  }
  const factor = FACTORS[key];
  return factor === undefined ? undefined : { kind: "zoom", range: scaleRange(range, whole, at, factor) };
}

function scaleRange([from, to]: Range, [first, last]: Range, at: number, factor: number): Range | undefined {
  const center = Math.min(Math.max(at, from), to);
  const start = Math.max(first, center - (center - from) * factor);
  const end = Math.min(last, center + (to - center) * factor);
  return start <= first && end >= last ? undefined : [start, end];
}
