// Conversion of instants to and from date fields, which contain a time without a zone.
import { getZone, type Zone } from "@/shell/timeZone.ts";

const MINUTE_MS = 60_000;

/**
 * The value of a date field that contains no usable date: only some parts are filled in, or the year has more than four
 * digits. No service accepts it as an instant.
 */
export const INCOMPLETE = "incomplete";
export const INCOMPLETE_ERROR = "Complete the date, with a year of four digits, and the time, or clear the field.";

/** Browsers allow years of up to six digits, which RFC 3339 does not. */
const DATE_TEXT = /^\d{4}-/;

/** Converts an instant to the value of a date field: 2026-11-21T14:03. Undefined or invalid text becomes empty. */
export function toDateField(instant: string | undefined, zone: Zone = getZone()): string {
  const time = new Date(instant ?? "");
  if (Number.isNaN(time.getTime())) {
    return "";
  }
  const ahead = zone === "utc" ? 0 : -time.getTimezoneOffset() * MINUTE_MS;
  return new Date(time.getTime() + ahead).toISOString().slice(0, time.getSeconds() === 0 ? 16 : 19);
}

/** Converts a date field's value to an instant in UTC; empty text stays empty, invalid text becomes INCOMPLETE. */
export function fromDateField(text: string, zone: Zone = getZone()): string {
  if (text === "") {
    return "";
  }
  const time = new Date(zone === "utc" ? `${text}Z` : text);
  return !DATE_TEXT.test(text) || Number.isNaN(time.getTime()) ? INCOMPLETE : time.toISOString();
}
