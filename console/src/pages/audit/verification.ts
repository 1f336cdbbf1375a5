// A verdict, and the end of the chain that it speaks of: records arrive all the time, and none may look verified that is not.
import type { Verdict } from "@/api/provenance.ts";
import { type ChainEnd, findBrokenSequence } from "./picture.ts";

/** What the service is asked. */
export interface ChainQueries {
  verify: () => Promise<Verdict>;
  /** Sequence of the newest record, 0 for an empty chain. */
  tip: () => Promise<number>;
  /** Size of the newest checkpoint, null without one. */
  checkpoint: () => Promise<number | null>;
}

export interface VerifiedChain {
  verdict: Verdict;
  end: ChainEnd;
}

/** Has a chain verified, and finds how far the verdict reaches. */
export async function verifyToEnd({ verify, tip, checkpoint }: ChainQueries): Promise<VerifiedChain> {
  const before = await tip();
  const verdict = await verify();
  if (verdict.Empty) {
    return { verdict, end: { tip: 0, checkpoint: null } };
  }
  // Behind a break nothing is shown as verified, so that the newest end is good for it.
  const last = findBrokenSequence(verdict) === null ? (countRecords(verdict) ?? before) : await tip();
  return { verdict, end: { tip: last, checkpoint: await checkpoint() } };
}

/** How many records a verdict says that it is about; null where it does not say. */
function countRecords(verdict: Verdict): number | null {
  const count = /^([0-9]{1,12}) records?, all sound/.exec(verdict.Reason ?? "")?.[1];
  return verdict.ChainValid && count !== undefined ? Number(count) : null;
}
