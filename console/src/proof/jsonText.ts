// Strict parsing of typed JSON: a stored record must have the same meaning for every reader.
import type { JsonObject } from "./record.ts";

/** An object, or the problem of the text. */
export type Read =
  | { readonly value: JsonObject; readonly problem: undefined }
  | { readonly value: undefined; readonly problem: string };

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[{}[\]:,]|true|false|null/g;
const OPENS = new Set(["{", "["]);
const CLOSES = new Set(["}", "]"]);

/**
 * Parses a JSON object. Rejects, like the service: other values, duplicate names, lone surrogates, integers beyond ±(2^53−1), which JSON.parse would round, and numbers beyond a double.
 */
export function readObject(text: string): Read {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return createProblem(text.trim() === "" ? "Enter a JSON object, such as {}." : describeError(error));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return createProblem("Enter a JSON object: { … }.");
  }
  const problem = findProblem(text);
  return problem === null ? { value: value as JsonObject, problem: undefined } : createProblem(problem);
}

/** Formats an object as text to edit. */
export function writeObject(value: unknown): string {
  return JSON.stringify(value ?? {}, null, 2);
}

function createProblem(problem: string): Read {
  return { value: undefined, problem };
}

/** Finds problems in valid JSON that JSON.parse ignores. */
function findProblem(text: string): string | null {
  const names: Set<string>[] = [];
  const tokens = text.match(TOKEN) ?? [];
  for (const [place, token] of tokens.entries()) {
    if (OPENS.has(token)) names.push(new Set());
    if (CLOSES.has(token)) names.pop();
    const fault = checkText(token) ?? (tokens[place + 1] === ":" ? checkName(token, names.at(-1)) : checkNumber(token));
    if (fault) return fault;
  }
  return null;
}

function checkText(token: string): string | null {
  if (!token.startsWith('"')) return null;
  return /\p{Surrogate}/u.test(JSON.parse(token) as string)
    ? `${token} contains a lone surrogate (half a character).`
    : null;
}

/** Adds a name to the names of its object; returns a problem if it is a duplicate. */
function checkName(token: string, before: Set<string> | undefined): string | null {
  const name = JSON.parse(token) as string;
  if (before?.has(name)) return `The name ${token} occurs twice in one object.`;
  before?.add(name);
  return null;
}

function checkNumber(token: string): string | null {
  if (!/^[-\d]/.test(token)) return null;
  const number = Number(token);
  if (!Number.isFinite(number)) return `${token} is too large for a JSON number.`;
  const whole = /^-?\d+$/.test(token);
  if (whole && !Number.isSafeInteger(number)) return `${token} is too large for an exact JSON integer.`;
  return null;
}

function describeError(error: unknown): string {
  return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
}
