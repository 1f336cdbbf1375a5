import type { Area } from "./scopes.ts";

/** Gives the items that can be seen, top to bottom: each area, and its rights where it is unfolded. */
export function listItems(areas: readonly Area[], folded: ReadonlySet<string>): readonly string[] {
  return areas.flatMap((area) => [area.id, ...(folded.has(area.id) ? [] : area.rights)]);
}

/** Gives where a key leads from an item, undefined for a key that moves nowhere. */
export function findNextItem(key: string, items: readonly string[], from: string): string | undefined {
  const at = items.indexOf(from);
  const to: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
  const index = to[key];
  return index === undefined ? undefined : items[Math.min(Math.max(index, 0), items.length - 1)];
}

/** Gives the area of a right; undefined for an area. */
export function findParent(areas: readonly Area[], item: string): string | undefined {
  return areas.find((area) => area.rights.some((right) => right === item))?.id;
}
