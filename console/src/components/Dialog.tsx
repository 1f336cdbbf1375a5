import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./Button.tsx";
import css from "./Dialog.module.css";
import { VisibleText } from "./VisibleText.tsx";

interface Props {
  title: string;
  /** Called by Escape, the cross, and a click outside; the owner must then remove the dialog. */
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the bottom right, the main one last. */
  actions?: ComponentChildren;
  wide?: boolean;
}

/** A modal dialog. It takes the focus, and restores it at the end. */
export function Dialog({ title, onClose, children, actions, wide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
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
  const outside = (event: MouseEvent) => {
    if (event.target === dialog.current) {
      onClose();
    }
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes the dialog, too
    <dialog
      ref={dialog}
      class={wide ? css.wide : css.dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={outside}
    >
      <div class={css.inside}>
        <header>
          <h2 id={id}>
            <VisibleText text={title} />
          </h2>
          <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
        </header>
        <div class={css.body}>{children}</div>
        {actions && <footer>{actions}</footer>}
      </div>
    </dialog>
  );
}
