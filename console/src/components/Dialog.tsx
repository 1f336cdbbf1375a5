import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { confirmDiscard } from "@/router/unsaved.ts";
import { Button } from "./Button.tsx";
import css from "./Dialog.module.css";
import { useTypedText } from "./useTypedText.ts";
import { VisibleText } from "./VisibleText.tsx";

interface Props {
  title: string;
  /** Called by Escape, the cross, and a click outside, after a question if typed text would be lost; the owner must then remove the dialog. */
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the bottom right, the main one last; a function gets an `onClose` that asks the same question. */
  actions?: ComponentChildren | ((close: () => void) => ComponentChildren);
  wide?: boolean;
}

/** A modal dialog. It takes the focus, and restores it at the end. Typed text is discarded only after a question. */
export function Dialog({ title, onClose, children, actions, wide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const typed = useTypedText(dialog);
  /** Where the pointer was pressed: the selection of a text in the dialog can end outside. */
  const pressed = useRef<EventTarget | null>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) {
        before.focus();
      }
    };
  }, []);
  const close = () => {
    if (!typed.isUnsaved() || confirmDiscard()) {
      onClose();
    }
  };
  const closeOnEscape = (event: KeyboardEvent) => {
    // Without this the browser closes the dialog at the second Escape, whatever `cancel` says.
    if (event.key === "Escape" && !event.defaultPrevented) {
      event.preventDefault();
      close();
    }
  };
  const closeOutside = (event: MouseEvent) => {
    const isOutside = event.target === dialog.current && pressed.current === dialog.current;
    // The second click of a double click does not close the dialog that the first one opened.
    if (isOutside && event.detail < 2) {
      close();
    }
  };
  return (
    <dialog
      ref={dialog}
      class={wide ? css.wide : css.dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target === dialog.current) {
          event.preventDefault();
          close();
        }
      }}
      onKeyDown={closeOnEscape}
      onPointerDown={(event) => {
        pressed.current = event.target;
      }}
      onClick={closeOutside}
    >
      <div class={css.inside}>
        <header>
          <h2 id={id}>
            <VisibleText text={title} isName />
          </h2>
          <Button kind="quiet" icon="close" label="Close" onClick={close} />
        </header>
        <div class={css.body}>{children}</div>
        {actions && <footer>{typeof actions === "function" ? actions(close) : actions}</footer>}
      </div>
    </dialog>
  );
}
