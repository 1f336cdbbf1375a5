import { getLineStyle } from "./lineStyles.ts";
import css from "./Plot.module.css";

/** A short piece of a line, for a legend. */
export function LineSample({ index }: { index: number }) {
  const { dash, width } = getLineStyle(index);
  return (
    <svg class={css.sample} width="28" height="8" viewBox="0 0 28 8" aria-hidden="true" data-series={(index % 6) + 1}>
      <line x1="0" y1="4" x2="28" y2="4" stroke="currentColor" stroke-width={width} stroke-dasharray={dash.join(" ")} />
    </svg>
  );
}
