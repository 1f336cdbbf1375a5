import { useEffect, useState } from "preact/hooks";
import { findSuspicious } from "./alteration.ts";
import type { Listing } from "./paging.ts";

const NONE: ReadonlySet<number> = new Set();

/**
 * Checks the listed records in the browser.
 * @param listing undefined while it loads
 * @param isFiltered whether the list contains only the records that match filters
 * @returns sequences of records that were altered, or are next to a missing record
 */
export function useAltered(listing: Listing | undefined, isFiltered: boolean): ReadonlySet<number> {
  const [found, setFound] = useState(NONE);
  useEffect(() => {
    let isOver = false;
    const checked = listing ? findSuspicious(listing.rows, isFiltered, !listing.hasMore) : Promise.resolve(NONE);
    void checked.then((altered) => isOver || setFound(altered.size === 0 ? NONE : altered));
    return () => {
      isOver = true;
    };
  }, [listing, isFiltered]);
  return found;
}
