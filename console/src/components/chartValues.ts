// Marks of an axis of values, whatever their size.
import { formatExponent } from "@/format.ts";

const LONG = 1e9;
const SHORT = 1e-3;
const MOST_DIGITS = 15;
/** The logarithm of a power of ten can be slightly less than a whole number. */
const ROUNDING = 1e-9;
const DIGITS = 7;
const PADDING = 20;
/** Smaller steps, relative to the values, exceed a number's precision. */
const FINEST = 1e-12;

/**
 * Formats an axis mark with as many digits as distinguish it from its neighbours.
 * @param step distance between the marks
 */
export function formatMark(value: number, step: number): string {
  const size = Math.abs(value);
  // The sum of rounded steps is not exactly 0.
  if (size < step / 2) {
    return "0";
  }
  const power = Math.floor(Math.log10(step) + ROUNDING);
  if (size >= LONG || size < SHORT) {
    return formatExponent(value, toDigits(Math.floor(Math.log10(size) + ROUNDING) - power));
  }
  return value.toLocaleString("en", { maximumFractionDigits: toDigits(-power) });
}

function toDigits(count: number): number {
  return Math.min(Math.max(count, 0), MOST_DIGITS);
}

/** Returns the width of axis marks in pixels. */
export function measureWidth(marks: readonly string[] | null, least: number): number {
  const longest = Math.max(0, ...(marks ?? []).map((text) => text.length));
  return Math.max(least, Math.ceil(longest * DIGITS) + PADDING);
}

/** Lists the possible distances between marks, ascending: 1, 2 and 5 of each suitable power of ten. */
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
