// Memory of a tab until it is closed or the user signs out; without secrets.
import { NAME } from "./storage.ts";

const PREFIX = `${NAME}-`;

/** Returns the remembered value of a name, undefined without one. */
export function recall(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** Remembers a JSON value; does nothing if the browser blocks storage. */
export function remember(name: string, value: unknown): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // The page works without.
  }
}
