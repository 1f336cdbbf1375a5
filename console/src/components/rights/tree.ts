import type { Area } from "./areas.ts";

/** Returns the visible items, top to bottom: each area, and the rights of unfolded areas. */
export function listItems(areas: readonly Area[], folded: ReadonlySet<string>): readonly string[] {
  return areas.flatMap((area) => [area.id, ...(folded.has(area.id) ? [] : area.rights)]);
}

/** Returns the item to move to on a key, undefined for other keys. */
export function findNextItem(key: string, items: readonly string[], from: string): string | undefined {
  const at = items.indexOf(from);
  const to: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
  const index = to[key];
  return index === undefined ? undefined : items[Math.min(Math.max(index, 0), items.length - 1)];
}

/** Returns the area of a right; undefined for an area. */
export function findParent(areas: readonly Area[], item: string): string | undefined {
  return areas.find((area) => area.rights.some((right) => right === item))?.id;
}
