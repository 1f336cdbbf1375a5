// Comparison of two states.
import canonicalize from "canonicalize";

import type { JsonObject } from "./record.ts";

/** Returns the names of the properties that differ between two states, in display order. */
export function findChangedFields(before: JsonObject, after: JsonObject): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => formatMember(before, name) !== formatMember(after, name));
}

function formatMember(state: JsonObject, name: string): string | undefined {
  return Object.hasOwn(state, name) ? canonicalize(state[name]) : undefined;
}
