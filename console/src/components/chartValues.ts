// Marks of an axis of values, whatever their size.
import { formatExponent, formatReading } from "@/format.ts";

const LONG = 1e9;
const DIGITS = 7;
const PADDING = 20;
/** Smaller steps, relative to the values, exceed a number's precision. */
const FINEST = 1e-12;

/** Formats an axis mark in as few characters as are unique. */
export function formatMark(value: number): string {
  return Math.abs(value) >= LONG ? formatExponent(value, 5) : formatReading(value);
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
