// Conversion of instants to and from date fields, which contain a time without a zone.
import { getZone, type Zone } from "@/shell/timeZone.ts";

const MINUTE_MS = 60_000;

/** The value of a date field of which only some parts are filled in; no service accepts it as an instant. */
export const INCOMPLETE = "incomplete";
export const INCOMPLETE_ERROR = "Complete the date and the time, or clear the field.";

/** Converts an instant to the value of a date field: 2026-11-21T14:03. Undefined or invalid text becomes empty. */
export function toDateField(instant: string | undefined, zone: Zone = getZone()): string {
  const time = new Date(instant ?? "");
  if (Number.isNaN(time.getTime())) {
    return "";
  }
  const ahead = zone === "utc" ? 0 : -time.getTimezoneOffset() * MINUTE_MS;
  return new Date(time.getTime() + ahead).toISOString().slice(0, time.getSeconds() === 0 ? 16 : 19);
}

/** Converts a date field's value to an instant in UTC; empty or invalid text becomes undefined. */
export function fromDateField(text: string, zone: Zone = getZone()): string | undefined {
  const time = new Date(zone === "utc" && text !== "" ? `${text}Z` : text);
  return text === "" || Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
