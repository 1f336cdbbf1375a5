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

/** Values of the two fields: local times in the format of `datetime-local`. */
export interface Range {
  start: string;
  end: string;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Returns the range of a preset; it ends with the next full minute, to include the newest values. */
export function createRangeUpToNow(hours: number, now: Date): Range {
  const end = Math.ceil(now.getTime() / MINUTE_MS) * MINUTE_MS;
  return { start: toLocalTime(new Date(end - hours * HOUR_MS)), end: toLocalTime(new Date(end)) };
}

/** Formats a local time for `datetime-local`: 2026-11-21T14:03. */
export function toLocalTime(time: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day}T${two(time.getHours())}:${two(time.getMinutes())}`;
}

/** Converts a local time to RFC 3339 in UTC; returns invalid text unchanged, which the service rejects. */
export function toInstant(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}
