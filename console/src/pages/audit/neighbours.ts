// A record with the records beside it, and what the browser makes of their links.

import type { ChainName } from "@/proof/chains.ts";
import { genesisHash, recomputedHash } from "@/proof/record.ts";
import type { Ask } from "./paging.ts";
import { type Shown, shown } from "./shown.ts";

/** A record, and what was checked here: nothing of it is the service's word. */
export interface Placed {
  readonly record: Shown;
  readonly hasNext: boolean;
  /** The content has the digest that stands in it as its Hash. */
  readonly digestHolds: boolean;
  /** Its PreviousHash is the Hash of the record before, or the chain's genesis hash. */
  readonly linkHolds: boolean;
  /** The record after it links to it; null where there is none. */
  readonly nextLinkHolds: boolean | null;
}

/** Returns a record with what was checked about it; null where the chain has none there. */
export async function placed(
  ask: Ask,
  chain: ChainName,
  workspace: string,
  sequence: number,
  signal: AbortSignal,
): Promise<Placed | null> {
  const found = await ask({ fromSequence: Math.max(1, sequence - 1), toSequence: sequence + 1, limit: 3 }, signal);
  const around = found.records.map(shown);
  const at = (place: number) => around.find((record) => record.sequence === place);
  const [before, record, after] = [at(sequence - 1), at(sequence), at(sequence + 1)];
  if (!record) return null;
  const expected = sequence === 1 ? await genesisHash(workspace, chain.target, chain.scopeKey) : before?.hash;
  return {
    record,
    hasNext: after !== undefined,
    digestHolds: (await digestOf(record)) === record.hash,
    linkHolds: record.previousHash === expected,
    nextLinkHolds: after ? after.previousHash === record.hash : null,
  };
}

/** Returns the digest of what is shown; null for content that has no canonical form. */
async function digestOf({ record, damaged }: Shown): Promise<string | null> {
  try {
    return damaged ? null : await recomputedHash(record);
  } catch {
    return null;
  }
}
