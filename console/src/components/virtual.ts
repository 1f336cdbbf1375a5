/** The visible rows of a long list, and the height of those above and below. */
export interface Slice {
  /** First row drawn. */
  start: number;
  /** Row after the last one drawn. */
  end: number;
  /** Pixels above the first. */
  before: number;
  /** Pixels below the last. */
  after: number;
}

/**
 * Computes the visible rows, all of equal height, and a few around them.
 * @param top pixels scrolled away
 * @param height visible pixels
 * @param spare further rows to draw on each side
 */
export function computeSlice(count: number, rowHeight: number, top: number, height: number, spare = 8): Slice {
  const first = Math.floor(Math.max(0, top) / rowHeight);
  const seen = Math.ceil(Math.max(0, height) / rowHeight) + 1;
  const start = Math.max(0, Math.min(first - spare, count - seen - spare));
  const end = Math.min(count, Math.max(first + seen + spare, start));
  return { start, end, before: start * rowHeight, after: (count - end) * rowHeight };
}

/** Returns the scroll position that shows a row below a head; the current one if the row is visible. */
export function scrollToShow(row: number, rowHeight: number, top: number, height: number, head: number): number {
  const from = row * rowHeight;
  const room = height - head;
  if (from < top) {
    return from;
  }
  return from + rowHeight > top + room ? from + rowHeight - room : top;
}
