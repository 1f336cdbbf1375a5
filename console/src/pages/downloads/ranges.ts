/** A range up to now. */
export interface Preset {
  label: string;
  hours: number;
}

export const PRESETS: readonly Preset[] = [
  { label: "Last hour", hours: 1 },
  { label: "24 hours", hours: 24 },
  { label: "7 days", hours: 7 * 24 },
  { label: "30 days", hours: 30 * 24 },
];

/** The two ends: instants in UTC, RFC 3339; empty if none is entered. */
export interface Range {
  start: string;
  end: string;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Returns the range of a preset; it ends with the next full minute, to include the newest values. */
export function createRangeUpToNow(hours: number, now: Date): Range {
  const end = Math.ceil(now.getTime() / MINUTE_MS) * MINUTE_MS;
  return { start: new Date(end - hours * HOUR_MS).toISOString(), end: new Date(end).toISOString() };
}
