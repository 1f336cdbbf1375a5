import type { Alert } from "@/api/alerts.ts";

/**
 * Returns the alerts that began within a range.
 * @param from start in seconds since 1970, included
 * @param to end in seconds since 1970, not included
 */
export function filterByStart(alerts: readonly Alert[], from: number, to: number): readonly Alert[] {
  return alerts.filter((alert) => toStart(alert) >= from && toStart(alert) < to);
}

/** Tells whether the list, newest first, goes back to a time in seconds since 1970. */
export function reachesBefore(alerts: readonly Alert[], time: number): boolean {
  const last = alerts.at(-1);
  return last !== undefined && toStart(last) < time;
}

function toStart({ startedAt }: Alert): number {
  return Date.parse(startedAt) / 1000;
}
