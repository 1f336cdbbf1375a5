import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import type { Area } from "./areas.ts";
import { findNextItem, findParent, listItems } from "./tree.ts";

interface Tree {
  /** The item in the tab order. */
  current: string | undefined;
  isFolded: (area: string) => boolean;
  onFocus: (item: string) => void;
  onKeyDown: (event: KeyboardEvent) => void;
}

/** Keyboard control of a tree (WAI-ARIA tree view): one item in the tab order, arrows move and fold, Space and Enter tick. */
export function useTree(
  areas: readonly Area[],
  box: RefObject<HTMLElement | null>,
  onTick: (item: string) => void,
): Tree {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState("");
  const items = listItems(areas, folded);
  const current = items.includes(active) ? active : items[0];
  const focus = (item: string | undefined) => {
    if (item !== undefined) {
      box.current?.querySelector<HTMLElement>(`[data-item="${CSS.escape(item)}"]`)?.focus();
    }
  };
  const sideways = (item: string, closing: boolean) => {
    const isArea = areas.some((area) => area.id === item);
    if (isArea && folded.has(item) !== closing) {
      setFolded(closing ? new Set([...folded, item]) : new Set([...folded].filter((each) => each !== item)));
    } else {
      focus(closing ? findParent(areas, item) : isArea ? items[items.indexOf(item) + 1] : undefined);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (current === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const to = findNextItem(event.key, items, current);
    if (to !== undefined) {
      focus(to);
    } else if (event.key === " " || event.key === "Enter") {
      onTick(current);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      sideways(current, event.key === "ArrowLeft");
    } else {
      return;
    }
    event.preventDefault();
  };
  return { current, isFolded: (area) => folded.has(area), onFocus: setActive, onKeyDown };
}
