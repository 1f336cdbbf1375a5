// Records that were removed from the end of a chain: a signed checkpoint covers more records than the chain has.
import { api, isAbort } from "@/api/index.ts";
import { fetchNewestCheckpoint } from "@/api/provenance.ts";
import type { ChainName } from "@/proof/chains.ts";
import { fetchTip, type QueryRecords } from "./paging.ts";

/** Returns how many records the newest checkpoint covers: 0 if none was signed yet, null if it cannot be read. */
export async function fetchCoveredCount(chain: ChainName, signal: AbortSignal): Promise<number | null> {
  try {
    return (await fetchNewestCheckpoint(api, chain, signal))?.size ?? 0;
  } catch (error) {
    if (isAbort(error)) {
      throw error;
    }
    return null;
  }
}

/**
 * Returns how many records the newest checkpoint covers if the chain, last read up to `top`, ends before; else 0.
 * Returns null if the newest checkpoint cannot be read.
 */
export async function findRemovedEnd(
  ask: QueryRecords,
  chain: ChainName,
  top: number,
  signal: AbortSignal,
): Promise<number | null> {
  const covered = await fetchCoveredCount(chain, signal);
  if (covered === null) return null;
  // The end is read again, because the checkpoint can be newer than the list.
  return covered > top && covered > (await fetchTip(ask, signal)) ? covered : 0;
}
