// Signs of alteration that the browser finds in records: content, links to the neighbours, damage.
import { hasWebCrypto } from "@/proof/bytes.ts";
import { computeHash, formatRecordId, type JsonObject } from "@/proof/record.ts";
import type { CheckedRecord } from "./checkedRecord.ts";
import { type RecordView, toRecordView } from "./recordView.ts";

export const ALTERED = "Altered after it was recorded. Do not rely on these values.";
/** For a chain that counts no records: they were removed, or only the count was altered. */
export const EMPTIED =
  "Records were removed or altered after they were recorded. Do not rely on the records of this chain.";
/** For a sound record before a missing one. */
export const NEXT_REMOVED = "The next record was removed or its RecordID altered.";

/** Returns the signs that a record, or its neighbour, was altered or removed; empty for a sound record. */
export function listAlterations(found: CheckedRecord): string[] {
  const { record, digestHolds, linkHolds, next } = found;
  if (record.damaged) {
    return ["This record is damaged in the store: its content is not a valid record."];
  }
  const before = formatRecordId(record.sequence - 1);
  const after = formatRecordId(record.sequence + 1);
  return [
    ...(digestHolds === false ? ["The content does not match its hash: altered or damaged."] : []),
    ...(linkHolds === false && record.sequence === 1 ? ["It does not begin with the genesis hash of this chain."] : []),
    ...(linkHolds === false && record.sequence > 1
      ? [`It does not link to record ${before}: one of the two was altered, or a record between them was removed.`]
      : []),
    ...(next === "broken"
      ? [`Record ${after} does not link to it: one of the two was altered, or a record between them was removed.`]
      : []),
    ...(next === "missing"
      ? [
          `Record ${after} is missing. Later records or a signed checkpoint show that it existed: it was removed, or its RecordID was altered.`,
        ]
      : []),
  ];
}

/** Number of records whose hashes are computed at once; a check can be stopped between two batches. */
const BATCH = 500;

/**
 * Returns the sequences of records that were altered, do not link to their neighbour, or are next to a missing record.
 * @param rows newest first
 * @param isFiltered whether filters exclude records, so that a gap is no sign
 * @param reachesStart whether the rows must contain the first record of the chain, unless filters exclude it
 */
export async function findSuspicious(
  rows: readonly RecordView[],
  isFiltered: boolean,
  reachesStart: boolean,
): Promise<ReadonlySet<number>> {
  const altered = await findAltered(rows);
  return isFiltered ? altered : new Set([...altered, ...findGaps(rows, reachesStart)]);
}

/** Returns the sequences of listed records that were altered or do not link to a listed neighbour. */
export async function findAltered(rows: readonly RecordView[], signal?: AbortSignal): Promise<ReadonlySet<number>> {
  const altered = await findAlteredContent(rows, signal);
  return new Set([...altered.map(({ sequence }) => sequence), ...findBrokenLinks(rows)]);
}

/** Returns the listed records that are damaged, or whose content does not match their hash. */
export async function findAlteredContent(rows: readonly RecordView[], signal?: AbortSignal): Promise<RecordView[]> {
  const altered: RecordView[] = [];
  for (let start = 0; start < rows.length; start += BATCH) {
    signal?.throwIfAborted();
    const batch = rows.slice(start, start + BATCH);
    const matches = await Promise.all(batch.map(matchesHash));
    altered.push(...batch.filter((row, index) => row.damaged || !matches[index]));
  }
  return altered;
}

/** Returns the sequences of listed records that do not link to a listed neighbour: one of the two was altered. */
export function findBrokenLinks(rows: readonly RecordView[]): number[] {
  const bySequence = new Map(rows.map((row) => [row.sequence, row]));
  return rows.flatMap((row) => {
    const before = bySequence.get(row.sequence - 1);
    return before && !row.damaged && row.previousHash !== before.hash ? [row.sequence, before.sequence] : [];
  });
}

/**
 * Returns the sequences of listed records next to a missing record.
 * @param rows records of a list without filters, newest first
 * @param reachesStart whether the list must contain the first record of the chain
 */
export function findGaps(rows: readonly RecordView[], reachesStart: boolean): number[] {
  const listed = rows.map(({ sequence }) => sequence);
  const expected = reachesStart ? [...listed, 0] : listed;
  return expected.flatMap((sequence, index) => {
    const older = expected[index + 1];
    return older !== undefined && sequence - older > 1 ? [sequence, older] : [];
  });
}

/** Tells whether the content of a stored record no longer matches its hash. */
export async function isAltered(record: object): Promise<boolean> {
  return !(await matchesHash(toRecordView(record as JsonObject)));
}

const checked = new WeakMap<JsonObject, Promise<boolean>>();

/** Tells whether the content matches the stored hash; true if this browser cannot compute hashes. */
function matchesHash({ record, hash }: RecordView): Promise<boolean> {
  const known = checked.get(record) ?? computeMatch(record, hash);
  checked.set(record, known);
  return known;
}

async function computeMatch(record: JsonObject, hash: string): Promise<boolean> {
  try {
    return !hasWebCrypto() || (await computeHash(record)) === hash;
  } catch {
    return false;
  }
}
