import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Returns a reference for a form or a dialog's content, and a function that moves the focus to its first invalid field. */
export function useInvalidFocus<E extends HTMLElement>(): { element: RefObject<E | null>; focusInvalid: () => void } {
  const element = useRef<E>(null);
  const [attempts, setAttempts] = useState(0);
  // Before the browser paints, because a person who sees the error may already type into another field.
  useLayoutEffect(() => {
    if (attempts > 0) {
      element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
  }, [attempts]);
  return { element, focusInvalid: () => setAttempts((before) => before + 1) };
}
