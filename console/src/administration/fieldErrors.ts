import type { FieldError } from "@/api/problem.ts";

/** Messages of invalid fields, by the service's names. */
export type FieldMessages = Readonly<Record<string, string | undefined>>;

const LOOKUP = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const LONGEST_NAME = 256;

/** Returns the message for a field and its parts: `source.devices[1]` belongs to `source.devices`. */
export function findFieldMessage(errors: readonly FieldError[], field: string): string | undefined {
  const own = errors.find((error) => error.field === field)?.message;
  const parts = errors
    .filter((error) => error.field.startsWith(`${field}[`) || error.field.startsWith(`${field}.`))
    .map((error) => `${describePart(error.field.slice(field.length))}: ${error.message}`);
  return own ?? (parts.length > 0 ? parts.join("; ") : undefined);
}

/** Checks a name, or the ID of a member. */
export function checkName(text: string, what: string): string | undefined {
  if (text === "") {
    return `Enter ${what}.`;
  }
  if (text !== text.trim()) {
    return "must not begin or end with a space character";
  }
  return text.length > LONGEST_NAME ? `must have at most ${LONGEST_NAME} characters` : undefined;
}

export function checkLookup(text: string): string | undefined {
  return LOOKUP.test(text)
    ? undefined
    : "must have up to 64 letters, digits, _ and -, and begin with a letter or a digit";
}

/** Splits the text of a field with one entry a line; empty lines do not count. */
export function splitLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** `[1]` is entry 2; `.variables[0].min` stays a path. */
function describePart(path: string): string {
  const entry = /^\[(\d+)\]$/.exec(path)?.[1];
  return entry === undefined ? path.replace(/^\./, "") : `entry ${Number(entry) + 1}`;
}
