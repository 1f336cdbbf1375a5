import { getZone, type Zone } from "@/shell/timeZone.ts";

const UNITS = ["B", "kB", "MB", "GB", "TB"];
/** From here on, a size has the next unit: one decimal would round it to 1000.0. */
const UNIT_END = 999.95;
/** Larger whole numbers are not exact in JavaScript. */
const LARGE = 1e15;
const WHOLE = new Intl.NumberFormat("en");

/** Formats an instant in the zone of the page: 2026-11-21 14:03:09; returns other text unchanged. */
export function formatTime(at: string | number, precise = false, zone: Zone = getZone()): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) {
    return String(at);
  }
  const [day, clock] = zone === "utc" ? time.toISOString().split("T") : [formatLocalDay(time), formatLocalClock(time)];
  return `${day} ${clock?.slice(0, precise ? 12 : 8)}`;
}

function formatLocalDay(time: Date): string {
  return [time.getFullYear(), time.getMonth() + 1, time.getDate()].map(toTwoDigits).join("-");
}

function formatLocalClock(time: Date): string {
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(toTwoDigits).join(":");
  return `${clock}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

function toTwoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** 12,345 */
export function formatCount(value: number): string {
  return WHOLE.format(value === 0 ? 0 : value);
}

/** Formats a number of things: `1 record`, `12,345 records`. */
export function formatQuantity(value: number, noun: string): string {
  return `${formatCount(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Formats a measured value in few digits, with an exponent if it is very large or small. */
export function formatReading(value: number): string {
  const size = Math.abs(value);
  if (size === 0) {
    return "0";
  }
  if (Number.isInteger(value) && size < LARGE) {
    return formatCount(value);
  }
  if (size >= 1e9 || size < 1e-3) {
    return formatExponent(value, 3);
  }
  return value.toLocaleString("en", size < 1 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 3 });
}

/** 1.25e+300 */
export function formatExponent(value: number, decimals: number): string {
  return value.toExponential(decimals).replace(/\.?0+e/, "e");
}

/** 7.3 MB */
export function formatBytes(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= UNIT_END && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(1)} ${UNITS[unit]}`;
}

/** Formats a number with all its digits: `1,234`, `0.30000000000000004`; returns other values as `formatPlain` does. */
export function formatNumber(value: unknown): string {
  return Number.isSafeInteger(value) ? formatCount(value as number) : formatPlain(value);
}

/** Formats a value of a query result as one line of text. */
export function formatPlain(value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
