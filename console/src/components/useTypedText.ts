import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { blockLeaving } from "@/router/unsaved.ts";

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** Watches the inputs of a dialog for values that the reader entered and that are not saved. */
export interface TypedText {
  /** Tells whether an input has another value than before the reader used it. */
  isUnsaved: () => boolean;
}

/** Watches all inputs inside an element; a changed value also guards the tab and the browser's buttons. */
export function useTypedText(element: RefObject<HTMLElement | null>): TypedText {
  const before = useRef(new Map<Input, string>());
  const isUnsaved = () => [...before.current].some(([input, value]) => input.isConnected && readValue(input) !== value);
  useEffect(() => {
    const box = element.current;
    let release: (() => void) | undefined;
    const remember = ({ target }: Event) => {
      if (isInput(target) && !before.current.has(target)) {
        before.current.set(target, readValue(target));
      }
    };
    const update = () => {
      if (isUnsaved()) {
        release ??= blockLeaving("dialog");
      } else {
        release?.();
        release = undefined;
      }
    };
    box?.addEventListener("focusin", remember);
    box?.addEventListener("input", update);
    box?.addEventListener("change", update);
    return () => {
      box?.removeEventListener("focusin", remember);
      box?.removeEventListener("input", update);
      box?.removeEventListener("change", update);
      release?.();
    };
  }, []);
  return { isUnsaved };
}

function isInput(target: EventTarget | null): target is Input {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}

function readValue(input: Input): string {
  const toggles = input instanceof HTMLInputElement && (input.type === "checkbox" || input.type === "radio");
  return toggles ? String(input.checked) : input.value;
}
