import { ApiError } from "@/api/index.ts";

/** A position in a text; both numbers start at 1. */
export interface Place {
  line: number;
  column: number;
}

/** An error in a query's text. */
export interface KqlError {
  message: string;
  place: Place | undefined;
}

const FIELDS = ["query", "kql", "Query"];
const POSITION = /\s*\[line:position=\d+:\d+\]/;

/** Returns the error in the query's text; undefined for other errors. */
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

/** Returns a short notice for an error that the editor shows; undefined for other errors. */
export function summarizeError(error: unknown): string | undefined {
  const alone = error instanceof ApiError && error.errors.length <= 1;
  return alone && toKqlError(error) ? "The query was rejected; see the message below its text." : undefined;
}

/** Converts a position to an offset from 0; a column after the end of a line becomes the end. */
export function computeOffset(text: string, place: Place): number {
  const lines = text.split("\n");
  const before = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const length = lines[place.line - 1]?.length ?? 0;
  return Math.min(text.length, before + Math.min(place.column - 1, length));
}

/** Returns the width of a line up to a column, in characters; tabs advance to multiples of `tabs`. */
export function measureColumn(line: string, column: number, tabs: number): number {
  return [...line.slice(0, column - 1)].reduce((at, each) => (each === "\t" ? at - (at % tabs) + tabs : at + 1), 0);
}

/** Returns the length of the word at a column; at least 1. */
export function measureWord(line: string, column: number): number {
  return /^[\w-]+/.exec(line.slice(column - 1))?.[0].length ?? 1;
}
