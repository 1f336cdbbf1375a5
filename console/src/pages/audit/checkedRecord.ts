// A record with the browser's checks of its digest and links.

import { hasWebCrypto } from "@/proof/bytes.ts";
import type { ChainName } from "@/proof/chains.ts";
import { computeGenesisHash, computeHash } from "@/proof/record.ts";
import { fetchRecord, type QueryRecords } from "./paging.ts";
import { type RecordView, toRecordView } from "./recordView.ts";
import { fetchCoveredCount } from "./removedEnd.ts";

/**
 * State of the link from the next record: `missing` if it was removed, `none` for the newest record, `unknown` if there
 * is none and the newest checkpoint, which shows whether it was removed, cannot be read.
 */
export type NextLink = "holds" | "broken" | "missing" | "none" | "unknown";

/** A record with the browser's own checks. */
export interface CheckedRecord {
  readonly sequence: number;
  readonly record: RecordView;
  /** Whether the content's digest equals its Hash; null if the browser cannot compute digests. */
  readonly digestHolds: boolean | null;
  /** Whether PreviousHash is the Hash of the previous record or the genesis hash; null as above. */
  readonly linkHolds: boolean | null;
  readonly next: NextLink;
}

/** A sequence for which the chain contains no record. */
export interface AbsentRecord {
  readonly sequence: number;
  readonly record: null;
  /**
   * Whether the chain has later records, or a checkpoint covers this one, so that it was removed; null if the newest
   * checkpoint cannot be read.
   */
  readonly isRemoved: boolean | null;
}

/** Loads the record of a sequence and checks it. */
export async function loadRecord(
  ask: QueryRecords,
  chain: ChainName,
  workspace: string,
  sequence: number,
  signal: AbortSignal,
): Promise<CheckedRecord | AbsentRecord> {
  const found = await ask({ fromSequence: Math.max(1, sequence - 1), toSequence: sequence + 1, limit: 3 }, signal);
  const around = found.records.map(toRecordView);
  const at = (place: number) => around.find((record) => record.sequence === place);
  const [before, record, after] = [at(sequence - 1), at(sequence), at(sequence + 1)];
  if (!record) {
    return { sequence, record: null, isRemoved: await isMissing(ask, chain, sequence, signal) };
  }
  return {
    sequence,
    record,
    digestHolds: hasWebCrypto() ? (await computeDigest(record)) === record.hash : null,
    linkHolds: await isLinked(record, before, chain, workspace),
    next: await findNextLink(ask, chain, record, after, signal),
  };
}

/**
 * Returns whether the chain has no record of a sequence, although it has later ones or a checkpoint covers it; null if
 * the newest checkpoint cannot be read.
 */
async function isMissing(
  ask: QueryRecords,
  chain: ChainName,
  sequence: number,
  signal: AbortSignal,
): Promise<boolean | null> {
  const later = await ask({ fromSequence: sequence + 1, limit: 1 }, signal);
  if (later.records.length === 0) {
    const covered = await fetchCoveredCount(chain, signal);
    if (covered === null) return null;
    if (covered < sequence) return false;
  }
  // The record is read again, because it and later ones may have been appended since it was read.
  return (await fetchRecord(ask, sequence, signal))?.sequence !== sequence;
}

async function findNextLink(
  ask: QueryRecords,
  chain: ChainName,
  record: RecordView,
  after: RecordView | undefined,
  signal: AbortSignal,
): Promise<NextLink> {
  if (after) return after.previousHash === record.hash ? "holds" : "broken";
  const missing = await isMissing(ask, chain, record.sequence + 1, signal);
  if (missing === null) return "unknown";
  return missing ? "missing" : "none";
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
