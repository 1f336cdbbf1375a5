/** How long a token lives, and what such a one is for. */
export interface Lifetime {
  minutes: number;
  title: string;
  use: string;
}

export const LIFETIMES: readonly Lifetime[] = [
  { minutes: 15, title: "15 minutes", use: "one call by hand, a look at something" },
  { minutes: 60, title: "1 hour", use: "a notebook, a session in the API Explorer" },
  { minutes: 480, title: "8 hours", use: "a shift: a dashboard on the line" },
  { minutes: 1440, title: "24 hours", use: "a day's commissioning, a load over night" },
  { minutes: 10_080, title: "7 days", use: "a trial, an auditor's visit" },
  { minutes: 43_200, title: "30 days", use: "a device that cannot renew; prefer an API key" },
];

export const MOST_MINUTES = 43_200;

/** Reads what somebody entered as a lifetime; undefined where it is no whole number of minutes that the service takes. */
export function parseMinutes(text: string): number | undefined {
  const minutes = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0;
  return minutes >= 1 && minutes <= MOST_MINUTES ? minutes : undefined;
}

/**
 * Tells whether a token of some minutes would end in time.
 * @param longest when the credential behind it ends, null for never
 */
export function canIssue(minutes: number, longest: string | null, now: Date): boolean {
  return longest === null || now.getTime() + minutes * 60_000 <= new Date(longest).getTime();
}

/** The whole minutes that are left until an instant. */
export function countMinutesUntil(end: string, now: Date): number {
  return Math.max(0, Math.floor((new Date(end).getTime() - now.getTime()) / 60_000));
}
