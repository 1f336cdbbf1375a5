import type { ComponentChildren } from "preact";
import css from "./Badge.module.css";
import { joinClasses } from "./classes.ts";

export type Tone = "neutral" | "good" | "warn" | "bad" | "accent";

interface Props {
  tone?: Tone;
  children: ComponentChildren;
}

/** A short label. */
export function Badge({ tone = "neutral", children }: Props) {
  return <span class={joinClasses(css.badge, css[tone])}>{children}</span>;
}

/** A state as a shape and a word, readable without colours. */
export function Status({ tone = "neutral", children }: Props) {
  return (
    <span class={joinClasses(css.status, css[`is-${tone}`])}>
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
        {SHAPES[tone]}
      </svg>
      {children}
    </span>
  );
}

const SHAPES = {
  good: <circle cx="5" cy="5" r="4.5" fill="currentColor" />,
  warn: <path d="M5 .5l4.7 9H.3z" fill="currentColor" />,
  bad: <path d="M.5.5h9v9h-9z" fill="currentColor" />,
  neutral: <circle cx="5" cy="5" r="3.75" fill="none" stroke="currentColor" stroke-width="1.5" />,
  accent: <path d="M5 0l5 5-5 5-5-5z" fill="currentColor" />,
};
