// A record with the records beside it, and what the browser makes of their links.

import { hasWebCrypto } from "@/proof/bytes.ts";
import type { ChainName } from "@/proof/chains.ts";
import { computeGenesisHash, computeHash } from "@/proof/record.ts";
import type { QueryRecords } from "./paging.ts";
import { type RecordView, toRecordView } from "./recordView.ts";

/** A record, and what was checked here: nothing of it is the service's word. */
export interface CheckedRecord {
  readonly record: RecordView;
  readonly hasNext: boolean;
  /** The content has the digest that stands in it as its Hash; null where the browser computes none. */
  readonly digestHolds: boolean | null;
  /** Its PreviousHash is the Hash of the record before, or the chain's genesis hash; null as above. */
  readonly linkHolds: boolean | null;
  /** The record after it links to it; null where there is none. */
  readonly nextLinkHolds: boolean | null;
}

/** Returns a record with what was checked about it; null where the chain has none there. */
export async function loadRecord(
  ask: QueryRecords,
  chain: ChainName,
  workspace: string,
  sequence: number,
  signal: AbortSignal,
): Promise<CheckedRecord | null> {
  const found = await ask({ fromSequence: Math.max(1, sequence - 1), toSequence: sequence + 1, limit: 3 }, signal);
  const around = found.records.map(toRecordView);
  const at = (place: number) => around.find((record) => record.sequence === place);
  const [before, record, after] = [at(sequence - 1), at(sequence), at(sequence + 1)];
  if (!record) return null;
  return {
    record,
    hasNext: after !== undefined,
    digestHolds: hasWebCrypto() ? (await computeDigest(record)) === record.hash : null,
    linkHolds: await isLinked(record, before, chain, workspace),
    nextLinkHolds: after ? after.previousHash === record.hash : null,
  };
}

async function isLinked(
  record: RecordView,
  before: RecordView | undefined,
  chain: ChainName,
  workspace: string,
): Promise<boolean | null> {
  if (record.sequence > 1) return record.previousHash === before?.hash;
  if (!hasWebCrypto()) return null;
  return record.previousHash === (await computeGenesisHash(workspace, chain.target, chain.scopeKey));
}

/** Returns the digest of what is shown; null for content that has no canonical form. */
async function computeDigest({ record, damaged }: RecordView): Promise<string | null> {
  try {
    return damaged ? null : await computeHash(record);
  } catch {
    return null;
  }
}
