import { isRawNumber } from "@/api/exactNumbers.ts";
import { diffSequences, takeBlock } from "./lineDiff.ts";

export type Change = "same" | "added" | "removed" | "changed";

/** A field of two states. */
export interface FieldChange {
  /** Names from the outermost object on; positions in arrays as `[0]`, of a removed element its position before. */
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
  if (isPlainList(before) && isPlainList(after)) {
    return diffLists(before, after, path);
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

/** Compares two lists by their elements, so that an inserted one does not change all that follow. */
function diffLists(before: readonly unknown[], after: readonly unknown[], path: readonly string[]): FieldChange[] {
  const found: FieldChange[] = [];
  const steps = diffSequences(before.map(toText), after.map(toText));
  let [left, right] = [0, 0];
  for (let at = 0; at < steps.length; ) {
    const block = takeBlock(steps, at);
    at += block.length;
    const removed = block.filter(({ change }) => change !== "added").length;
    const added = block.filter(({ change }) => change !== "removed").length;
    for (let index = 0; index < Math.max(removed, added); index += 1) {
      const position = index < added ? right + index : left + index;
      const [old, next] = [
        index < removed ? before[left + index] : undefined,
        index < added ? after[position] : undefined,
      ];
      found.push(compareValues([...path, `[${position}]`], old, next));
    }
    left += removed;
    right += added;
  }
  return found;
}

function isPlainList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.every((each) => listMembers(each) === undefined);
}

function toText(value: unknown): string {
  return JSON.stringify(value);
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
