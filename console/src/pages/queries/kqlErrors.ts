import { ApiError } from "@/api/index.ts";

/** A place in a text, both counted from 1 as the engine does. */
export interface Place {
  line: number;
  column: number;
}

/** What is wrong with a query's text. */
export interface KqlError {
  message: string;
  place: Place | undefined;
}

const FIELDS = ["query", "kql", "Query"];
const POSITION = /\s*\[line:position=\d+:\d+\]/;

/** Gives what an error says of the query's text; undefined where it is about something else. */
export function toKqlError(error: unknown): KqlError | undefined {
  if (!(error instanceof ApiError)) {
    return undefined;
  }
  const message = FIELDS.map((field) => error.fieldMessage(field)).find((text) => text !== undefined);
  const { line, column } = error.members;
  const placed = typeof line === "number" && typeof column === "number";
  if (message === undefined && !placed && error.code !== "QUERY_NOT_READ_ONLY") {
    return undefined;
  }
  const text = (message ?? error.detail).replace(POSITION, "");
  return { message: text, place: placed ? { line, column } : undefined };
}

/** What a notice says in place of an error that stands at the editor already; undefined where the notice is to tell it. */
export function summarizeError(error: unknown): string | undefined {
  const alone = error instanceof ApiError && error.errors.length <= 1;
  return alone && toKqlError(error) ? "The query is not accepted; the reason stands below its text." : undefined;
}

/** Where in a text a place is, counted from 0; past the end of a line it is that end. */
export function computeOffset(text: string, place: Place): number {
  const lines = text.split("\n");
  const before = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const length = lines[place.line - 1]?.length ?? 0;
  return Math.min(text.length, before + Math.min(place.column - 1, length));
}

/** How many characters wide a line is up to a column, where each tab leads to the next multiple of `tabs`. */
export function measureColumn(line: string, column: number, tabs: number): number {
  return [...line.slice(0, column - 1)].reduce((at, each) => (each === "\t" ? at - (at % tabs) + tabs : at + 1), 0);
}

/** How long the word is that starts at a column; one character at least. */
export function measureWord(line: string, column: number): number {
  return /^[\w-]+/.exec(line.slice(column - 1))?.[0].length ?? 1;
}
