// Styles of the lines of a chart. Dashes distinguish the first six without colour, their width the next six.

/** The style of a line. */
export interface LineStyle {
  /** Name of the CSS variable of its colour. */
  color: string;
  /** Lengths of dashes and gaps in pixels; empty for a solid line. */
  dash: readonly number[];
  /** Pixels. */
  width: number;
}

/** Number of lines that have different styles. */
export const MOST_STYLES = 12;

const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [16, 5], [8, 3, 2, 3, 2, 3]];
const THIN = 1.5;
const THICK = 3;

/** Returns the style of a line by its place from 0; the styles repeat after twelve. */
export function getLineStyle(index: number): LineStyle {
  const place = index % DASHES.length;
  return {
    color: `--series-${place + 1}`,
    dash: DASHES[place] ?? [],
    width: index % MOST_STYLES < DASHES.length ? THIN : THICK,
  };
}
