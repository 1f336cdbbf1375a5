// What a tab remembers for its reader until it is closed or the reader signs out; nothing secret.
import { NAME } from "./storage.ts";

const PREFIX = `${NAME}-`;

/** Gives what was remembered under a name, undefined without. */
export function recall(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** Remembers a JSON value; a browser that stores nothing remembers nothing. */
export function remember(name: string, value: unknown): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // The page works without.
  }
}
