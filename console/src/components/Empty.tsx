import type { ComponentChildren } from "preact";
import css from "./Empty.module.css";

interface Props {
  title: string;
  /** Says what to do next. */
  children: ComponentChildren;
  /** A button that does it. */
  action?: ComponentChildren;
}

/** There is nothing to show, and what to do about that. */
export function Empty({ title, children, action }: Props) {
  return (
    <div class={css.empty}>
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}
