// Instants as date fields hold them: in the reader's own time zone, without saying so.

/** Returns an instant as a date field holds it; empty for none. */
export function toDateField(instant: string | undefined): string {
  const time = new Date(instant ?? "");
  if (Number.isNaN(time.getTime())) return "";
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, time.getSeconds() === 0 ? 16 : 19);
}

/** Returns what a date field holds as an instant in UTC; undefined for nothing. */
export function fromDateField(text: string): string | undefined {
  const time = new Date(text);
  return text === "" || Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
