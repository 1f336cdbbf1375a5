import { getLineStyle } from "./lineStyles.ts";
import css from "./Plot.module.css";

/** A short piece of a line, or a mark, for a legend. */
export function LineSample({ index, mark = false }: { index: number; mark?: boolean }) {
  const { dash, width } = getLineStyle(index);
  if (mark) {
    return (
      <svg class={css.mark} width="28" height="10" viewBox="0 0 28 10" aria-hidden="true">
        <circle cx="14" cy="5" r="4" fill="none" stroke="currentColor" stroke-width="2" />
      </svg>
    );
  }
  return (
    <svg class={css.sample} width="28" height="8" viewBox="0 0 28 8" aria-hidden="true" data-series={(index % 6) + 1}>
      <line x1="0" y1="4" x2="28" y2="4" stroke="currentColor" stroke-width={width} stroke-dasharray={dash.join(" ")} />
    </svg>
  );
}
