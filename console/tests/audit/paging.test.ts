import { beforeEach, describe, expect, it } from "vitest";
import type { Window } from "@/api/provenance.ts";
import {
  COUNTED,
  countNewer,
  fetchRecord,
  loadOlder,
  openListing,
  PAGE,
  type QueryRecords,
} from "@/pages/audit/paging.ts";
import { formatRecordId, type JsonObject, parseRecordId } from "@/proof/record.ts";

const { signal } = new AbortController();
let chain: JsonObject[];
let asked: Window[];

beforeEach(() => {
  chain = [];
  asked = [];
  grow(3 * PAGE);
});

function grow(records: number): void {
  for (let made = 0; made < records; made += 1) {
    chain.push({ RecordID: formatRecordId(chain.length + 1), ActionType: chain.length % 2 === 0 ? "Open" : "Close" });
  }
}

/** Answers as the service does. */
const ask: QueryRecords = async (window) => {
  asked.push(window);
  const { fromSequence = 1, toSequence = Number.POSITIVE_INFINITY, actionType, limit } = window;
  const found = chain.filter((record) => {
    const sequence = parseRecordId(record.RecordID) ?? 0;
    return sequence >= fromSequence && sequence <= toSequence && (!actionType || record.ActionType === actionType);
  });
  return { records: found.reverse().slice(0, limit), hasMore: found.length > limit };
};

const places = (rows: readonly { sequence: number }[]): number[] => rows.map((row) => row.sequence);

describe("a listing", () => {
  it("begins at the newest record and goes down without gap or repetition", async () => {
    let listing = await openListing(ask, {}, undefined, signal);
    expect(listing.top).toBe(3 * PAGE);
    while (listing.hasMore) listing = await loadOlder(ask, {}, listing, signal);
    expect(places(listing.rows)).toEqual(Array.from({ length: 3 * PAGE }, (_, place) => 3 * PAGE - place));
  });

  it("stays put while records arrive, and counts them", async () => {
    const listing = await openListing(ask, {}, undefined, signal);
    grow(7);
    const further = await loadOlder(ask, {}, listing, signal);
    expect(places(further.rows).slice(0, PAGE)).toEqual(places(listing.rows));
    expect(further.rows.at(PAGE)?.sequence).toBe(2 * PAGE);
    expect(await countNewer(ask, {}, further, signal)).toEqual({ count: 7, more: false });
  });

  it("counts as newer only what matches, even where nothing that is shown does", async () => {
    const listing = await openListing(ask, { actionType: "None" }, undefined, signal);
    expect([listing.rows.length, listing.top]).toEqual([0, 3 * PAGE]);
    grow(4);
    expect((await countNewer(ask, { actionType: "Open" }, listing, signal)).count).toBe(2);
  });

  it("begins at a record that the reader went to", async () => {
    const listing = await openListing(ask, {}, 150, signal);
    expect([listing.top, listing.rows[0]?.sequence, listing.rows.length, listing.hasMore]).toEqual([
      150,
      150,
      150,
      false,
    ]);
    expect(await countNewer(ask, {}, listing, signal)).toEqual({ count: COUNTED, more: true });
  });

  it("goes down past RecordIDs that somebody forged", async () => {
    for (const place of [PAGE, 2 * PAGE]) chain[place] = { RecordID: "999999999999", ActionType: "Forged" };
    const byPlace: QueryRecords = async ({ toSequence = chain.length, limit }) => ({
      records: chain.slice(0, toSequence).reverse().slice(0, limit),
      hasMore: toSequence > limit,
    });
    let listing = await openListing(byPlace, {}, chain.length, signal);
    for (let pages = 0; listing.hasMore; pages += 1) {
      expect(pages).toBeLessThan(5);
      listing = await loadOlder(byPlace, {}, listing, signal);
    }
    expect(places(listing.rows).slice(-3)).toEqual([3, 2, 1]);
  });

  it("asks for nothing below the first record", async () => {
    const listing = await openListing(ask, {}, 1, signal);
    asked = [];
    expect((await loadOlder(ask, {}, listing, signal)).hasMore).toBe(false);
    expect(asked).toEqual([]);
  });

  it("is empty for a chain that nobody wrote to", async () => {
    chain = [];
    expect(await openListing(ask, {}, undefined, signal)).toEqual({ top: 0, low: 1, rows: [], hasMore: false });
    grow(1);
    expect(await countNewer(ask, {}, { top: 0, low: 1, rows: [], hasMore: false }, signal)).toEqual({
      count: 1,
      more: false,
    });
  });
});

describe("one record", () => {
  it("is found by its sequence, whatever the filters", async () => {
    expect((await fetchRecord(ask, 5, signal))?.id).toBe("000000000005");
    expect(await fetchRecord(ask, 5000, signal)).toBeNull();
  });
});
