// Exact parsing of replies: JSON.parse would round whole numbers beyond 2^53.
import { createIdempotencyKey } from "./idempotency.ts";

/** Tells whether a property whose value contains such a number becomes JSON text; `parent` is the property around it. */
type TextRule = (name: string, parent: string) => boolean;

const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const WHOLE = /^-?[1-9]\d*$/;

/** Functions that old browsers and TypeScript's library lack. */
type RawJson = JSON & { rawJSON?: (text: string) => object; isRawJSON?: (value: unknown) => boolean };

/**
 * Parses definitions with parameters and returns whole numbers beyond 2^53 as text. The default of a parameter, or its
 * value in an alert rule, that contains such a number becomes JSON text, which the service accepts as the same value.
 */
export function parseExactDefinitions(text: string): unknown {
  return parseWithTexts(text, (name, parent) => name === "default" || parent === "parameters");
}

/**
 * Parses telemetry messages and returns whole numbers beyond 2^53 as text. A payload that contains such a number becomes
 * JSON text.
 */
export function parseExactMessages(text: string): unknown {
  return parseWithTexts(text, (name) => name === "payload");
}

/** Returns a number that JSON.stringify writes with all digits of a whole number. Old browsers still round. */
export function toExactNumber(text: string): unknown {
  const { rawJSON } = JSON as RawJson;
  const digits = text.trim();
  return rawJSON && WHOLE.test(digits) && isRounded(digits) ? rawJSON(digits) : Number(digits);
}

/** Tells whether a value of `toExactNumber` is an object, because it is a whole number beyond 2^53. */
export function isRawNumber(value: unknown): boolean {
  return (JSON as RawJson).isRawJSON?.(value) === true;
}

function parseWithTexts(text: string, isText: TextRule): unknown {
  if (!/\d{16}/.test(text)) {
    return JSON.parse(text);
  }
  // Random, because a fixed mark could occur in a stored text.
  const mark = createIdempotencyKey();
  const marked = text.replace(STRING_OR_NUMBER, (token) => (isRounded(token) ? `"${mark}${token}"` : token));
  return marked === text
    ? JSON.parse(text)
    : restoreNumbers(JSON.parse(marked), new RegExp(`"${mark}(-?\\d+)"`, "g"), isText);
}

function isRounded(token: string): boolean {
  return /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
}

/** Replaces marked numbers by their digits; `name` is the name of the property that holds the value. */
function restoreNumbers(value: unknown, marked: RegExp, isText: TextRule, name = "", parent = ""): unknown {
  if (typeof value === "string" || isText(name, parent)) {
    const json = JSON.stringify(value);
    const text = json.replace(marked, "$1");
    return text === json ? value : text;
  }
  if (Array.isArray(value)) {
    return value.map((each) => restoreNumbers(each, marked, isText));
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, restoreNumbers(each, marked, isText, key, name)]),
    );
  }
  return value;
}
