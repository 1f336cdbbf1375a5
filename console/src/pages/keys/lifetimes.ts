/** A lifetime of a token, and its purpose. */
export interface Lifetime {
  minutes: number;
  title: string;
  use: string;
}

export const LIFETIMES: readonly Lifetime[] = [
  { minutes: 15, title: "15 minutes", use: "a single call by hand" },
  { minutes: 60, title: "1 hour", use: "a notebook, a session in the API Explorer" },
  { minutes: 480, title: "8 hours", use: "one shift, such as a dashboard on the line" },
  { minutes: 1440, title: "24 hours", use: "a day of commissioning, an import overnight" },
  { minutes: 10_080, title: "7 days", use: "a trial, an auditor's visit" },
  { minutes: 43_200, title: "30 days", use: "a device that cannot renew; prefer an API key" },
];

export const MOST_MINUTES = 43_200;

/** Parses a lifetime in minutes; undefined for anything that the service would reject. */
export function parseMinutes(text: string): number | undefined {
  const minutes = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0;
  return minutes >= 1 && minutes <= MOST_MINUTES ? minutes : undefined;
}

/** Tells whether a token of this lifetime would end before its credential.
 * @param longest the end of the credential, null without one
 */
export function canIssue(minutes: number, longest: string | null, now: Date): boolean {
  return longest === null || now.getTime() + minutes * 60_000 <= new Date(longest).getTime();
}

/** Returns the whole minutes until an instant. */
export function countMinutesUntil(end: string, now: Date): number {
  return Math.max(0, Math.floor((new Date(end).getTime() - now.getTime()) / 60_000));
}
