// Ranges of the past: a preset up to now, or from one instant to another.
import { session } from "@/session/index.ts";
import { INCOMPLETE, INCOMPLETE_ERROR } from "./dateFields.ts";

/** A chosen range: the seconds of a preset up to now, "all", or "between" with two instants. */
export interface PastRange {
  preset: string;
  /** Instant in UTC, RFC 3339; empty if none is entered, INCOMPLETE if only a part is. */
  from: string;
  /** Instant in UTC, RFC 3339; empty for now, INCOMPLETE if only a part is entered. */
  to: string;
}

export const ALL = "all";
export const BETWEEN = "between";
const DAY_MS = 86_400_000;

/** Returns a range of a preset. */
export function createRange(preset: string, now: number = getNow()): PastRange {
  const day = { from: new Date(now - DAY_MS).toISOString(), to: new Date(now).toISOString() };
  return { preset, ...(preset === BETWEEN ? day : { from: "", to: "" }) };
}

/** Returns both ends in seconds since 1970; for "all" the start is 0. An incomplete end is NaN. */
export function resolveRange(range: PastRange, now: number = getNow()): { from: number; to: number } {
  const end = Math.floor(now / 1000);
  if (range.preset !== BETWEEN) {
    return { from: range.preset === ALL ? 0 : end - Number(range.preset), to: end };
  }
  const to = range.to === "" ? end : Date.parse(range.to) / 1000;
  return { from: range.from === "" ? 0 : Date.parse(range.from) / 1000, to };
}

/** Returns why a range is not usable; undefined if it is. */
export function checkRange(range: PastRange, now: number = getNow()): string | undefined {
  if (isIncomplete(range)) {
    return INCOMPLETE_ERROR;
  }
  const { from, to } = resolveRange(range, now);
  if (range.preset === BETWEEN && from >= to) {
    return "From must be before To.";
  }
  return undefined;
}

/** Tells whether a range has no end but the current time. */
export function endsNow({ preset, to }: PastRange): boolean {
  return preset !== BETWEEN || to === "";
}

/** Tells whether only a part of one of the dates is filled in. */
export function isIncomplete({ from, to }: PastRange): boolean {
  return from === INCOMPLETE || to === INCOMPLETE;
}

/** Returns the time by the service's clock, milliseconds since 1970. */
function getNow(): number {
  return session.now().getTime();
}
