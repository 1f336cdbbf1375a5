// Exact parsing of definitions with parameters: JSON.parse would round whole numbers beyond 2^53.
import { createIdempotencyKey } from "./idempotency.ts";

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/**
 * Parses JSON and returns whole numbers beyond 2^53 as text. A property `default` that contains such a number becomes
 * the JSON text of its value, which the service accepts as a default of the same value.
 */
export function parseExactDefaults(text: string): unknown {
  if (!/\d{16}/.test(text)) {
    return JSON.parse(text);
  }
  // Random, because a fixed mark could occur in a stored text.
  const mark = createIdempotencyKey();
  const marked = text.replace(STRING_OR_NUMBER, (token) => (isRounded(token) ? `"${mark}${token}"` : token));
  return marked === text
    ? JSON.parse(text)
    : restoreNumbers(JSON.parse(marked), "", new RegExp(`"${mark}(-?\\d+)"`, "g"));
}

function isRounded(token: string): boolean {
  return /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
}

/** Replaces marked numbers by their digits; `name` is the name of the property that holds the value. */
function restoreNumbers(value: unknown, name: string, marked: RegExp): unknown {
  if (typeof value === "string" || name === "default") {
    const json = JSON.stringify(value);
    const text = json.replace(marked, "$1");
    return text === json ? value : text;
  }
  if (Array.isArray(value)) {
    return value.map((each) => restoreNumbers(each, "", marked));
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, restoreNumbers(each, key, marked)]));
  }
  return value;
}
