// Verification of a growing chain: records that arrive later must not appear as verified.
import type { Verdict } from "@/api/provenance.ts";
import { type ChainEnd, findBrokenSequence } from "./picture.ts";

/** Requests to the service. */
export interface ChainQueries {
  verify: () => Promise<Verdict>;
  /** Returns the newest sequence, 0 for an empty chain. */
  tip: () => Promise<number>;
  /** Returns the size of the newest checkpoint, null without one. */
  checkpoint: () => Promise<number | null>;
}

export interface VerifiedChain {
  verdict: Verdict;
  end: ChainEnd;
}

/** Verifies a chain and finds the last verified record. */
export async function verifyToEnd({ verify, tip, checkpoint }: ChainQueries): Promise<VerifiedChain> {
  const before = await tip();
  const verdict = await verify();
  if (verdict.Empty) {
    return { verdict, end: { tip: 0, checkpoint: null } };
  }
  // After a break nothing appears as verified, so the current end is safe to show.
  const last = findBrokenSequence(verdict) === null ? (countRecords(verdict) ?? before) : await tip();
  return { verdict, end: { tip: last, checkpoint: await checkpoint() } };
}

/** Returns the number of records in a verdict; null if the verdict has none. */
function countRecords(verdict: Verdict): number | null {
  const count = /^([0-9]{1,12}) records?, all sound/.exec(verdict.Reason ?? "")?.[1];
  return verdict.ChainValid && count !== undefined ? Number(count) : null;
}
