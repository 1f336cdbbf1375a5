// Texts about a plan, and errors of a document at their positions.
import { ApiError, isOutdated } from "@/api/problem.ts";
import type { Plan } from "@/api/workspaceDocument.ts";
import type { TextError } from "@/components/textPlaces.ts";
import { formatCount } from "@/format.ts";

/** Limit of the service for a document. */
export const MAX_BYTES = 16 * 1024 * 1024;

const ACTIONS = ["added", "changed", "removed"] as const;

/** Returns the errors of a document's text; none for errors that concern something else. */
export function toTextErrors(error: unknown): TextError[] {
  if (!(error instanceof ApiError) || error.status !== 400) {
    return [];
  }
  return error.errors.map(({ field, message, line, column }) => ({
    message: field === "body" ? message : `${field} ${message}`,
    place: typeof line === "number" && typeof column === "number" ? { line, column } : undefined,
  }));
}

/** Tells whether the workspace or the document changed since the plan, so that the plan was not applied. */
export function isPlanOutdated(error: unknown): boolean {
  return isOutdated(error);
}

/** Returns the number of changes for each action. */
export function countChanges({ changes }: Plan): Record<(typeof ACTIONS)[number], number> {
  const count = (action: string) => changes.filter((change) => change.action === action).length;
  return { added: count("added"), changed: count("changed"), removed: count("removed") };
}

/** Returns a plan in words: `2 added, 1 removed`. */
export function summarizePlan(plan: Plan): string {
  const counts = countChanges(plan);
  const parts = ACTIONS.filter((action) => counts[action] > 0).map(
    (action) => `${formatCount(counts[action])} ${action}`,
  );
  return parts.length === 0 ? "no changes" : parts.join(", ");
}

/** Returns the name of a kind: `warm query` for `warmQuery`. */
export function describeKind(kind: string): string {
  return kind.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim();
}

/** Returns a number of items in words: `1 change`, `2 changes`. */
export function countWords(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Reads a document from a file.
 * @throws Error if the file is too large or is not UTF-8 text
 */
export async function readDocumentFile(file: File): Promise<string> {
  if (file.size > MAX_BYTES) {
    throw new Error(`${file.name} is larger than 16 MiB, the limit for a document.`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not a UTF-8 text.`);
  }
}
