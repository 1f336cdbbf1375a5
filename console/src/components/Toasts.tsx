import { useLayoutEffect, useState } from "preact/hooks";
import { Button } from "./Button.tsx";
import { joinClasses } from "./classes.ts";
import { Icon } from "./Icon.tsx";
import css from "./Toasts.module.css";
import { dismiss, subscribeToToasts, type Toast } from "./toasts.ts";

/** The area for toasts; rendered once, in the shell. */
export function Toasts() {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  useLayoutEffect(() => subscribeToToasts(setToasts), []);
  return (
    <div class={css.stack} aria-live="polite">
      {toasts.map((toast) => (
        <div key={toast.id} class={joinClasses(css.toast, css[toast.kind])}>
          <Icon name={toast.kind === "good" ? "check" : "error"} />
          <span>{toast.text}</span>
          <Button kind="quiet" icon="close" label="Dismiss" onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
