// Pages through a chain by windows of sequences, so that what is shown stays put while records arrive.
import type { Filters, RecordPage, Window } from "@/api/provenance.ts";
import { type RecordView, toRecordView } from "./recordView.ts";

export type QueryRecords = (window: Window, signal: AbortSignal) => Promise<RecordPage>;

/** The records that are shown: newest first, from `top` down. */
export interface Listing {
  /** Last sequence of the chain when it was opened, or the record that the reader went to; 0 for an empty chain. */
  readonly top: number;
  /** Everything from this sequence on was read. */
  readonly low: number;
  readonly rows: readonly RecordView[];
  /** There are older records that match. */
  readonly hasMore: boolean;
}

export const PAGE = 200;
/** So many newer records are counted; then the count says "or more". */
export const COUNTED = 100;

/**
 * Opens a chain at its end, or at a record.
 *
 * @param from sequence to begin at and go down from; undefined for the chain's end.
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

/** Returns where the next page ends. A RecordID that somebody forged must not lead back to what was read. */
function findLowest(rows: readonly RecordView[], toSequence: number): number {
  const sound = rows.findLast(({ sequence }) => sequence > 0 && sequence <= toSequence);
  return sound?.sequence ?? Math.max(1, toSequence + 1 - rows.length);
}

/** How many records that match stand above a listing; `more` where counting stopped. */
export interface Newer {
  readonly count: number;
  readonly more: boolean;
}

/** Counts what stands above a listing. */
export async function countNewer(
  ask: QueryRecords,
  filters: Filters,
  listing: Listing,
  signal: AbortSignal,
): Promise<Newer> {
  const found = await ask({ ...filters, fromSequence: listing.top + 1, limit: COUNTED }, signal);
  return { count: found.records.length, more: found.hasMore };
}

/** Returns one record, null where the chain has none there. */
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
