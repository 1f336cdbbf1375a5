import { useRef } from "preact/hooks";
import { recordNavigation } from "./focus.ts";

/** Moves the focus to the heading if the view of a page changes. */
export function useViewFocus(view: string): void {
  const before = useRef(view);
  if (before.current !== view) {
    before.current = view;
    recordNavigation();
  }
}
