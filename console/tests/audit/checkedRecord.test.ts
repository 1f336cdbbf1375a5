import { afterEach, describe, expect, it, vi } from "vitest";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { loadRecord } from "@/pages/audit/checkedRecord.ts";
import type { QueryRecords } from "@/pages/audit/paging.ts";
import { type JsonObject, parseRecordId } from "@/proof/record.ts";
import { proofs } from "../proof/vectors.ts";

const chain = { target: "DomainEvents", scopeKey: proofs.scopeKey } as const;
const { signal } = new AbortController();

/** Answers from the published chain, with one record changed. */
function service(changed?: { at: number; to: JsonObject }): QueryRecords {
  return async ({ fromSequence = 1, toSequence = 99 }) => {
    const shown = proofs.records.map((record, index) =>
      changed?.at === index + 1 ? { ...record, ...changed.to } : record,
    );
    const found = shown.filter((record) => {
      const sequence = parseRecordId(record.RecordID) ?? 0;
      return sequence >= fromSequence && sequence <= toSequence;
    });
    return { records: found.reverse(), hasMore: false };
  };
}

function at(sequence: number, ask = service()) {
  return loadRecord(ask, chain, proofs.workspace, sequence, signal);
}

afterEach(() => vi.unstubAllGlobals());

describe("a record between its neighbours", () => {
  it("has its digest and its links", async () => {
    expect(await at(1)).toMatchObject({ digestHolds: true, linkHolds: true, nextLinkHolds: true, hasNext: true });
    expect(await at(7)).toMatchObject({ digestHolds: true, linkHolds: true, nextLinkHolds: true, hasNext: true });
    expect(await at(13)).toMatchObject({ digestHolds: true, linkHolds: true, nextLinkHolds: null, hasNext: false });
    expect(await at(14)).toBeNull();
  });

  it("shows what was edited", async () => {
    const content = { at: 7, to: { EntityID: "forged" } };
    expect(await at(7, service(content))).toMatchObject({ digestHolds: false, linkHolds: true, nextLinkHolds: true });
    const mended = { at: 7, to: { Hash: "0".repeat(64) } };
    expect(await at(7, service(mended))).toMatchObject({ digestHolds: false, nextLinkHolds: false });
    expect(await at(8, service(mended))).toMatchObject({ digestHolds: true, linkHolds: false });
    expect(await loadRecord(service(), chain, "another", 1, signal)).toMatchObject({
      digestHolds: true,
      linkHolds: false,
    });
  });

  it("is shown, unchecked, where the browser has no WebCrypto", async () => {
    vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
    expect(await at(1)).toMatchObject({ digestHolds: null, linkHolds: null, nextLinkHolds: true });
    expect(await at(7)).toMatchObject({ digestHolds: null, linkHolds: true });
    expect(createIdempotencyKey()).toMatch(/^[0-9a-f]{32}$/);
  });
});
