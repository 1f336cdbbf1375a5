import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { VisibleText } from "@/components/VisibleText.tsx";
import { takeFocus } from "./focus.ts";
import css from "./Page.module.css";

interface Props {
  title: string;
  description?: string;
  /** Buttons next to the title. */
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** The frame of a page: content and heading, which takes the focus after a navigation. */
export function Page({ title, description, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Before the browser paints, because the focus must not leave a field that the reader already uses.
  useLayoutEffect(() => {
    document.title = `${title} - Workspace console`;
  }, [title]);
  useLayoutEffect(() => takeFocus(heading.current), []);
  return (
    <div class={css.page}>
      <header class={css.head}>
        <div>
          <h1 ref={heading} tabIndex={-1}>
            <VisibleText text={title} />
          </h1>
          {description && (
            <p>
              <VisibleText text={description} />
            </p>
          )}
        </div>
        {actions && <div class={css.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface PanelProps {
  title?: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** A section of a page. */
export function Panel({ title, actions, children }: PanelProps) {
  return (
    <section class={css.panel}>
      {(title || actions) && (
        <header>
          <h2>{title}</h2>
          {actions && <div class={css.actions}>{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
