// Pages through a chain by windows of sequences, so that new records do not move the list.
import type { Filters, RecordPage, Window } from "@/api/provenance.ts";
import { type RecordView, toRecordView } from "./recordView.ts";

export type QueryRecords = (window: Window, signal: AbortSignal) => Promise<RecordPage>;

/** The loaded records: newest first, from `top` down. */
export interface Listing {
  /** First sequence of the list: the chain's end at opening, or the selected record; 0 for an empty chain. */
  readonly top: number;
  /** All records from this sequence on are loaded. */
  readonly low: number;
  readonly rows: readonly RecordView[];
  /** True if older records match. */
  readonly hasMore: boolean;
}

export const PAGE = 200;
/** Maximum count of newer records. */
export const COUNTED = 100;

/** Opens a chain at its end or at a record.
 *
 * @param from first sequence of the list; undefined for the chain's end.
 */
export async function openListing(
  ask: QueryRecords,
  filters: Filters,
  from: number | undefined,
  signal: AbortSignal,
): Promise<Listing> {
  const top = from ?? (await fetchTip(ask, signal));
  if (top === 0) return { top: 0, low: 1, rows: [], hasMore: false };
  return loadOlder(ask, filters, { top, low: top + 1, rows: [], hasMore: true }, signal);
}

/** Returns a listing with a further page of older records. */
export async function loadOlder(
  ask: QueryRecords,
  filters: Filters,
  listing: Listing,
  signal: AbortSignal,
): Promise<Listing> {
  const toSequence = listing.low - 1;
  if (toSequence < 1) return { ...listing, hasMore: false };
  const found = await ask({ ...filters, toSequence, limit: PAGE }, signal);
  const rows = found.records.map(toRecordView);
  return { ...listing, low: findLowest(rows, toSequence), rows: [...listing.rows, ...rows], hasMore: found.hasMore };
}

/** Returns the last sequence of the next page; a forged RecordID must not lead back to loaded records. */
function findLowest(rows: readonly RecordView[], toSequence: number): number {
  const sound = rows.findLast(({ sequence }) => sequence > 0 && sequence <= toSequence);
  return sound?.sequence ?? Math.max(1, toSequence + 1 - rows.length);
}

/** Count of the newer matching records; `more` if there are further ones. */
export interface Newer {
  readonly count: number;
  readonly more: boolean;
}

/** Counts the matching records that are newer than a listing. */
export async function countNewer(
  ask: QueryRecords,
  filters: Filters,
  listing: Listing,
  signal: AbortSignal,
): Promise<Newer> {
  const found = await ask({ ...filters, fromSequence: listing.top + 1, limit: COUNTED }, signal);
  return { count: found.records.length, more: found.hasMore };
}

/** Returns one record, null if the chain does not contain it. */
export async function fetchRecord(
  ask: QueryRecords,
  sequence: number,
  signal: AbortSignal,
): Promise<RecordView | null> {
  const found = await ask({ fromSequence: sequence, toSequence: sequence, limit: 1 }, signal);
  return found.records[0] ? toRecordView(found.records[0]) : null;
}

/** Returns the sequence of the newest record, 0 for an empty chain. */
export async function fetchTip(ask: QueryRecords, signal: AbortSignal): Promise<number> {
  const found = await ask({ limit: 1 }, signal);
  return found.records[0] ? toRecordView(found.records[0]).sequence : 0;
}
