import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { loadRecord } from "@/pages/audit/checkedRecord.ts";
import type { QueryRecords } from "@/pages/audit/paging.ts";
import { type JsonObject, parseRecordId } from "@/proof/record.ts";
import { session } from "@/session/index.ts";
import { proofs } from "../proof/vectors.ts";

const chain = { target: "DomainEvents", scopeKey: proofs.scopeKey } as const;
const { signal } = new AbortController();

/** Answers from the published chain, with one record changed or, without `to`, removed. */
function service(changed?: { at: number; to?: JsonObject }): QueryRecords {
  return async ({ fromSequence = 1, toSequence = 99, limit }) => {
    const shown = proofs.records.flatMap((record, index) => {
      if (changed?.at !== index + 1) return [record];
      return changed.to ? [{ ...record, ...changed.to }] : [];
    });
    const found = shown.filter((record) => {
      const sequence = parseRecordId(record.RecordID) ?? 0;
      return sequence >= fromSequence && sequence <= toSequence;
    });
    return { records: found.reverse().slice(0, limit), hasMore: found.length > limit };
  };
}

function at(sequence: number, ask = service()) {
  return loadRecord(ask, chain, proofs.workspace, sequence, signal);
}

beforeEach(() => {
  vi.spyOn(session.api, "get").mockResolvedValue(null);
});

afterEach(() => vi.unstubAllGlobals());

describe("a record between its neighbours", () => {
  it("has its digest and its links", async () => {
    expect(await at(1)).toMatchObject({ digestHolds: true, linkHolds: true, next: "holds" });
    expect(await at(7)).toMatchObject({ digestHolds: true, linkHolds: true, next: "holds" });
    expect(await at(13)).toMatchObject({ digestHolds: true, linkHolds: true, next: "none" });
    expect(await at(14)).toEqual({ sequence: 14, record: null, isRemoved: false });
  });

  it("shows what was edited", async () => {
    const content = { at: 7, to: { EntityID: "forged" } };
    expect(await at(7, service(content))).toMatchObject({ digestHolds: false, linkHolds: true, next: "holds" });
    const mended = { at: 7, to: { Hash: "0".repeat(64) } };
    expect(await at(7, service(mended))).toMatchObject({ digestHolds: false, next: "broken" });
    expect(await at(8, service(mended))).toMatchObject({ digestHolds: true, linkHolds: false });
    expect(await loadRecord(service(), chain, "another", 1, signal)).toMatchObject({
      digestHolds: true,
      linkHolds: false,
    });
  });

  it("that was removed is missing for its neighbour, and is no record that never existed", async () => {
    const removed = service({ at: 7 });
    expect(await at(6, removed)).toMatchObject({ linkHolds: true, next: "missing" });
    expect(await at(7, removed)).toEqual({ sequence: 7, record: null, isRemoved: true });
    expect(await at(8, removed)).toMatchObject({ linkHolds: false, next: "holds" });
  });

  it("that arrives with later ones after the first request is not missing", async () => {
    let asked = 0;
    const growing: QueryRecords = async (window, stop) => {
      asked += 1;
      return service()(asked === 1 ? { ...window, toSequence: 7 } : window, stop);
    };
    expect(await at(7, growing)).toMatchObject({ next: "none" });
    asked = 0;
    expect(await at(8, growing)).toEqual({ sequence: 8, record: null, isRemoved: false });
  });

  it("is shown, unchecked, where the browser has no WebCrypto", async () => {
    vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
    expect(await at(1)).toMatchObject({ digestHolds: null, linkHolds: null, next: "holds" });
    expect(await at(7)).toMatchObject({ digestHolds: null, linkHolds: true });
    expect(createIdempotencyKey()).toMatch(/^[0-9a-f]{32}$/);
  });
});
