import { useEffect, useState } from "preact/hooks";
import type { Connection } from "@/api/catalog.ts";
import { addCount, type Count } from "./rates.ts";

/** Holds the latest counts of messages, to compute rates. */
export function useCounts(data: readonly Pick<Connection, "id" | "stats">[] | undefined): readonly Count[] {
  const [counts, setCounts] = useState<readonly Count[]>([]);
  useEffect(() => {
    if (data) {
      setCounts((before) => addCount(before, data, Date.now()));
    }
  }, [data]);
  return counts;
}
