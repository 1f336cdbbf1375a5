// Conversion of instants to and from date fields, which have local time without a zone.

/** Converts an instant to the value of a date field; undefined becomes empty. */
export function toDateField(instant: string | undefined): string {
  const time = new Date(instant ?? "");
  if (Number.isNaN(time.getTime())) return "";
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, time.getSeconds() === 0 ? 16 : 19);
}

/** Converts a date field's value to an instant in UTC; empty becomes undefined. */
export function fromDateField(text: string): string | undefined {
  const time = new Date(text);
  return text === "" || Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
