// A record with the browser's checks of its digest and links.

import { hasWebCrypto } from "@/proof/bytes.ts";
import type { ChainName } from "@/proof/chains.ts";
import { computeGenesisHash, computeHash } from "@/proof/record.ts";
import type { QueryRecords } from "./paging.ts";
import { type RecordView, toRecordView } from "./recordView.ts";

/** A record with the browser's own checks. */
export interface CheckedRecord {
  readonly record: RecordView;
  readonly hasNext: boolean;
  /** Whether the content's digest equals its Hash; null if the browser cannot compute digests. */
  readonly digestHolds: boolean | null;
  /** Whether PreviousHash is the Hash of the previous record or the genesis hash; null as above. */
  readonly linkHolds: boolean | null;
  /** Whether the next record links to it; null without a next record. */
  readonly nextLinkHolds: boolean | null;
}

/** Loads a record and checks it; returns null if the chain does not contain it. */
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

/** Returns the digest of a record's content; null without a canonical form. */
async function computeDigest({ record, damaged }: RecordView): Promise<string | null> {
  try {
    return damaged ? null : await computeHash(record);
  } catch {
    return null;
  }
}
