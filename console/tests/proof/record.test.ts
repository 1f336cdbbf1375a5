import { describe, expect, it } from "vitest";
import { canonicalText, genesisHash, recomputedHash, recordId, sequenceOf } from "@/proof/record.ts";
import chains from "../../../tests/vectors/chain.json";
import jcs from "../../../tests/vectors/jcs.json";
import { proofs } from "./vectors.ts";

function double(bits: string): number {
  return new DataView(Uint8Array.from(bits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)).buffer).getFloat64(
    0,
  );
}

function text(hex: string): string {
  return new TextDecoder().decode(Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)));
}

describe("canonical text", () => {
  it("writes the published numbers of RFC 8785", () => {
    for (const { ieee754, text: written } of jcs.numbers) {
      expect(canonicalText({ n: double(ieee754) })).toBe(`{"n":${written}}`);
    }
  });

  it("gives the stored text of each published chain record back", async () => {
    for (const { canonicalHex, hash } of chains.chains.flatMap((chain) => chain.records)) {
      const record = { ...JSON.parse(text(canonicalHex)), Hash: "left out" };
      expect(canonicalText(record)).toBe(text(canonicalHex));
      expect(await recomputedHash(record)).toBe(hash);
    }
  });

  it("refuses more levels than records have, as the service does", () => {
    const levels = (count: number): unknown => JSON.parse("[".repeat(count) + "]".repeat(count));
    expect(canonicalText({ a: levels(127) })).toContain("[[");
    for (const count of [128, 254, 900]) {
      expect(() => canonicalText({ a: levels(count) })).toThrow(RangeError);
    }
  });

  it("refuses text that is no Unicode", () => {
    expect(() => canonicalText({ a: "\ud800" })).toThrow();
    expect(() => canonicalText({ "\udfff": 1 })).toThrow();
  });
});

describe("records", () => {
  it("have the Hash that the service gave them, and link from the genesis hash on", async () => {
    let previous = await genesisHash(proofs.workspace, proofs.target, proofs.scopeKey);
    expect(previous).toBe(proofs.genesis);
    for (const record of proofs.records) {
      expect(record.PreviousHash).toBe(previous);
      expect(await recomputedHash(record)).toBe(record.Hash);
      previous = record.Hash;
    }
  });

  it("do not keep their Hash when anything in them changes", async () => {
    const [record] = proofs.records;
    expect(record).toBeDefined();
    expect(await recomputedHash({ ...record, EntityID: "B-8" })).not.toBe(record?.Hash);
    expect(await recomputedHash({ ...record, Added: null })).not.toBe(record?.Hash);
  });

  it("name their sequence by 12 digits", () => {
    expect(recordId(1)).toBe("000000000001");
    expect(recordId(999_999_999_999)).toBe("999999999999");
    expect(sequenceOf("000000000042")).toBe(42);
    for (const none of ["42", "000000000000", "00000000000x", "0000000000001", 42, null, undefined]) {
      expect(sequenceOf(none)).toBeNull();
    }
  });
});
