import { describe, expect, it } from "vitest";
import { computeGenesisHash, computeHash, formatRecordId, parseRecordId, toCanonicalText } from "@/proof/record.ts";
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
      expect(toCanonicalText({ n: double(ieee754) })).toBe(`{"n":${written}}`);
    }
  });

  it("gives the stored text of each published chain record back", async () => {
    for (const { canonicalHex, hash } of chains.chains.flatMap((chain) => chain.records)) {
      const record = { ...JSON.parse(text(canonicalHex)), Hash: "left out" };
      expect(toCanonicalText(record)).toBe(text(canonicalHex));
      expect(await computeHash(record)).toBe(hash);
    }
  });

  it("refuses more levels than records have, as the service does", () => {
    const levels = (count: number): unknown => JSON.parse("[".repeat(count) + "]".repeat(count));
    expect(toCanonicalText({ a: levels(127) })).toContain("[[");
    for (const count of [128, 254, 900]) {
      expect(() => toCanonicalText({ a: levels(count) })).toThrow(RangeError);
    }
  });

  it("refuses text that is no Unicode", () => {
    expect(() => toCanonicalText({ a: "\ud800" })).toThrow();
    expect(() => toCanonicalText({ "\udfff": 1 })).toThrow();
  });
});

describe("records", () => {
  it("have the Hash that the service gave them, and link from the genesis hash on", async () => {
    let previous = await computeGenesisHash(proofs.workspace, proofs.target, proofs.scopeKey);
    expect(previous).toBe(proofs.genesis);
    for (const record of proofs.records) {
      expect(record.PreviousHash).toBe(previous);
      expect(await computeHash(record)).toBe(record.Hash);
      previous = record.Hash;
    }
  });

  it("do not keep their Hash when anything in them changes", async () => {
    const [record] = proofs.records;
    expect(record).toBeDefined();
    expect(await computeHash({ ...record, EntityID: "B-8" })).not.toBe(record?.Hash);
    expect(await computeHash({ ...record, Added: null })).not.toBe(record?.Hash);
  });

  it("name their sequence by 12 digits", () => {
    expect(formatRecordId(1)).toBe("000000000001");
    expect(formatRecordId(999_999_999_999)).toBe("999999999999");
    expect(parseRecordId("000000000042")).toBe(42);
    for (const none of ["42", "000000000000", "00000000000x", "0000000000001", 42, null, undefined]) {
      expect(parseRecordId(none)).toBeNull();
    }
  });
});
