import { ApiError } from "@/api/index.ts";
import type { TextError } from "@/components/textPlaces.ts";

const FIELDS = ["query", "kql", "Query"];
const POSITION = /\s*\[line:position=\d+:\d+\]/;

/** Returns the error in the query's text; undefined for other errors. */
export function toKqlError(error: unknown): TextError | undefined {
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
