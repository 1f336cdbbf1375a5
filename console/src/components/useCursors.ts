import { useState } from "preact/hooks";

/** The position in a list that the service returns in pages with cursors. */
export interface Cursors {
  /** Cursor of the requested page; undefined for the first one. */
  cursor: string | undefined;
  /** Number of the requested page, from 1; a list stores it with the rows, because the rows arrive later. */
  page: number;
  /** Moves to the page of a cursor; undefined on the last page. */
  toNext: (cursor: string | null) => (() => void) | undefined;
  /** Moves back; undefined on the first page. */
  toPrevious: (() => void) | undefined;
}

/** Returns the position in a list with cursors; a component with another `key` starts at the first page. */
export function useCursors(): Cursors {
  const [visited, setVisited] = useState<readonly (string | undefined)[]>([undefined]);
  return {
    cursor: visited.at(-1),
    page: visited.length,
    // Until the next page arrives, the list still has the cursor of that page; a second click must not add it again.
    toNext: (cursor) =>
      cursor === null
        ? undefined
        : () => setVisited((before) => (before.at(-1) === cursor ? before : [...before, cursor])),
    toPrevious: visited.length > 1 ? () => setVisited(visited.slice(0, -1)) : undefined,
  };
}
