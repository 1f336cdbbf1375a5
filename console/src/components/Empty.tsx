import type { ComponentChildren } from "preact";
import css from "./Empty.module.css";

interface Props {
  title: string;
  /** The next step. */
  children: ComponentChildren;
  /** A button for the next step. */
  action?: ComponentChildren;
}

/** A placeholder for an empty view, with the next step. */
export function Empty({ title, children, action }: Props) {
  return (
    <div class={css.empty}>
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}
