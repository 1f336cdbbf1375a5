import { isRawNumber } from "@/api/exactNumbers.ts";

export type Change = "same" | "added" | "removed" | "changed";

/** A field of two states. */
export interface FieldChange {
  /** Names from the outermost object on; positions in arrays as `[0]`. */
  path: readonly string[];
  change: Change;
  before: unknown;
  after: unknown;
}

/** Compares two JSON values field by field, at every level: fields of `before` first, then new ones. */
export function diff(before: unknown, after: unknown, path: readonly string[] = []): FieldChange[] {
  const left = listMembers(before);
  const right = listMembers(after);
  if (!left || !right || Array.isArray(before) !== Array.isArray(after) || left.size + right.size === 0) {
    return [compareValues(path, before, after)];
  }
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].flatMap((name) => {
    const inside = [...path, Array.isArray(after) ? `[${name}]` : name];
    if (!left.has(name)) {
      return [{ path: inside, change: "added", before: undefined, after: right.get(name) }];
    }
    if (!right.has(name)) {
      return [{ path: inside, change: "removed", before: left.get(name), after: undefined }];
    }
    return diff(left.get(name), right.get(name), inside);
  });
}

/** Tells whether two JSON values are equal; the order of properties does not count. */
export function isSame(left: unknown, right: unknown): boolean {
  return diff(left, right).every(({ change }) => change === "same");
}

function compareValues(path: readonly string[], before: unknown, after: unknown): FieldChange {
  if (before === undefined && after !== undefined) {
    return { path, change: "added", before, after };
  }
  if (before !== undefined && after === undefined) {
    return { path, change: "removed", before, after };
  }
  const same = JSON.stringify(before) === JSON.stringify(after);
  return { path, change: same ? "same" : "changed", before, after };
}

function listMembers(value: unknown): Map<string, unknown> | undefined {
  const hasMembers = typeof value === "object" && value !== null && !isRawNumber(value);
  return hasMembers ? new Map(Object.entries(value)) : undefined;
}
