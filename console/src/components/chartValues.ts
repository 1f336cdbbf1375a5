// Marks of an axis of values, whatever their size.
import { formatExponent, formatReading } from "@/format.ts";

const LONG = 1e9;
const DIGITS = 7;
const PADDING = 20;
/** Steps that are smaller than this part of the values are lost in a number's digits. */
const FINEST = 1e-12;

/** A mark of an axis, in as few characters as tell it from the next. */
export function formatMark(value: number): string {
  return Math.abs(value) >= LONG ? formatExponent(value, 5) : formatReading(value);
}

/** Pixels beside a chart that its marks need. */
export function measureWidth(marks: readonly string[] | null, least: number): number {
  const longest = Math.max(0, ...(marks ?? []).map((text) => text.length));
  return Math.max(least, Math.ceil(longest * DIGITS) + PADDING);
}

/** Distances that marks may have, the smallest first: 1, 2 and 5 of each power of ten near what fits. */
export function listSteps(lowest: number, highest: number, pixels: number, space: number): number[] {
  const exact = (highest / pixels - lowest / pixels) * space;
  if (!(exact > 0 && Number.isFinite(exact))) {
    return [];
  }
  const power = Math.floor(Math.log10(exact));
  const least = Math.max(Math.abs(lowest), Math.abs(highest)) * FINEST;
  const near = [power - 1, power, power + 1].flatMap((at) => [1, 2, 5].map((each) => Number(`${each}e${at}`)));
  return near.filter((step) => step > least && Number.isFinite(step));
}
