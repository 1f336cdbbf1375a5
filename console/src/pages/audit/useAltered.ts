import { useEffect, useState } from "preact/hooks";
import { findAltered } from "./alteration.ts";
import type { RecordView } from "./recordView.ts";

const NONE: ReadonlySet<number> = new Set();

/** Checks the listed records in the browser; returns the sequences of altered ones. */
export function useAltered(rows: readonly RecordView[]): ReadonlySet<number> {
  const [found, setFound] = useState(NONE);
  useEffect(() => {
    let isOver = false;
    void findAltered(rows).then((altered) => isOver || setFound(altered.size === 0 ? NONE : altered));
    return () => {
      isOver = true;
    };
  }, [rows]);
  return found;
}
