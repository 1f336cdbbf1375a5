import { describe, expect, it } from "vitest";
import { findAltered, findGaps, listAlterations } from "@/pages/audit/alteration.ts";
import { type RecordView, toRecordView } from "@/pages/audit/recordView.ts";
import { computeHash, type JsonObject } from "@/proof/record.ts";
import { proofs } from "../proof/vectors.ts";

/** The published chain as rows, newest first, with one record changed. */
function rows(at?: number, changes: JsonObject = {}): RecordView[] {
  return proofs.records
    .map((record, index) => toRecordView(index + 1 === at ? { ...record, ...changes } : record))
    .reverse();
}

const SOUND = { sequence: 10, digestHolds: true, linkHolds: true, next: "holds" } as const;

describe("records of a list", () => {
  it("are not marked while they are sound", async () => {
    expect(await findAltered(rows())).toEqual(new Set());
    expect(await findAltered(rows().filter(({ sequence }) => sequence % 2 === 0))).toEqual(new Set());
  });

  it("are marked if their content changed, or they are damaged", async () => {
    expect(await findAltered(rows(7, { EntityID: "forged" }))).toEqual(new Set([7]));
    expect(await findAltered(rows(7, { Damaged: true }))).toEqual(new Set([7]));
  });

  it("are marked on both sides of a link that does not hold", async () => {
    const original = proofs.records[6] as JsonObject;
    const forged = { ...original, EntityID: "forged" };
    const found = await findAltered(rows(7, { ...forged, Hash: await computeHash(forged) }));
    expect(found).toEqual(new Set([7, 8]));
  });
});

describe("records of a list without filters", () => {
  const without = (...removed: number[]) => rows().filter(({ sequence }) => !removed.includes(sequence));

  it("are marked on both sides of a removed record", () => {
    expect(findGaps(rows(), true)).toEqual([]);
    expect(findGaps(without(7, 8), true)).toEqual([9, 6]);
  });

  it("are marked before a removed start of the chain, as soon as the list reaches it", () => {
    expect(findGaps(without(1), false)).toEqual([]);
    expect(findGaps(without(1), true)).toContain(2);
  });
});

describe("a record", () => {
  it("that is sound has no sign of an alteration", () => {
    const record = rows()[3] as RecordView;
    expect(listAlterations({ record, ...SOUND })).toEqual([]);
    expect(listAlterations({ record, ...SOUND, digestHolds: null, next: "none" })).toEqual([]);
  });

  it("that was altered names each sign", () => {
    const record = rows()[3] as RecordView;
    const signs = listAlterations({ record, ...SOUND, digestHolds: false, linkHolds: false, next: "broken" });
    expect(signs).toHaveLength(3);
    expect(signs[0]).toBe("The content does not match its hash: altered or damaged.");
    expect(signs[1]).toContain("does not link to record 000000000009");
    expect(signs[2]).toContain("Record 000000000011 does not link to it");
    expect(listAlterations({ record, ...SOUND, next: "missing" })).toEqual([
      "Record 000000000011 is missing. Later records or a signed checkpoint show that it existed: it was removed, or its RecordID was altered.",
    ]);
    expect(listAlterations({ record: { ...record, damaged: true }, ...SOUND })[0]).toContain("damaged in the store");
  });
});
