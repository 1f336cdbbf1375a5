import { useLayoutEffect } from "preact/hooks";

/** Closes the unfolded menu on Escape, with the focus on its button, and on a click outside. */
export function useMenuClosing(isOpen: boolean, close: () => void): void {
  // Before the browser paints, so that the first key after the menu appears closes it.
  useLayoutEffect(() => {
    const button = document.querySelector<HTMLElement>('[aria-controls="navigation"]');
    const isInside = (target: EventTarget | null) =>
      target instanceof Node &&
      (button?.contains(target) || document.getElementById("navigation")?.contains(target) === true);
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") {
        close();
        button?.focus();
      }
    };
    const onPointer = (event: Event) => isInside(event.target) || close();
    if (isOpen) {
      document.addEventListener("keydown", onKey);
      document.addEventListener("pointerdown", onPointer);
    }
    return () => {
      document.removeEventListener("keydown", onKey);
      document.removeEventListener("pointerdown", onPointer);
    };
  }, [isOpen, close]);
}
