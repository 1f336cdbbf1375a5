import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { NoteError } from "@/proof/notes.ts";
import type { JsonObject } from "@/proof/record.ts";
import { type Chain, type OwnEvidence, type Proof, proveRecord, type Sources } from "@/proof/recordProof.ts";
import type { Step } from "@/proof/steps.ts";
import { createSigningKey, type SigningKey } from "./keys.ts";
import { proofs } from "./vectors.ts";

const chain: Chain = { workspace: proofs.workspace, target: proofs.target, scopeKey: proofs.scopeKey };
const record = (sequence: number): JsonObject => proofs.records[sequence - 1] ?? {};

/** Answers as a service that signed the chain up to a size. */
function service(size: number, changes: Partial<Sources> = {}): Sources {
  return {
    key: async () => `${proofs.verifierKey}\n`,
    keySet: async () => ({ keys: [] }),
    note: async () => proofs.checkpoints.find((one) => one.size === size)?.signedNote ?? null,
    inclusion: async (sequence, of) =>
      proofs.inclusion.find((one) => one.sequence === sequence && one.size === of)?.hashes ?? [],
    growth: async (from, of) => proofs.growth.find((one) => one.from === from && one.size === of)?.hashes ?? [],
    ...changes,
  };
}

async function proven(shown: JsonObject, sources: Sources, kept: OwnEvidence = {}, of: Chain = chain): Promise<Proof> {
  const told: Step[] = [];
  const proof = await proveRecord(shown, of, sources, kept, (step) => told.push(step));
  expect(told).toEqual(proof.steps);
  return proof;
}

const outcomes = (proof: Proof): Record<string, string> =>
  Object.fromEntries(proof.steps.map((step) => [step.name, step.outcome]));

describe("a record's proof", () => {
  it("holds step by step", async () => {
    for (let sequence = 1; sequence <= 13; sequence += 1) {
      const proof = await proven(record(sequence), service(13));
      expect(proof.outcome).toBe("holds");
      expect(proof.steps.map((step) => step.name)).toEqual(["digest", "key", "signature", "origin", "inclusion"]);
      expect(proof.note).toBe(proofs.checkpoints.at(-1)?.signedNote);
    }
  });

  it("fails at digest and inclusion when the content was edited", async () => {
    const proof = await proven({ ...record(4), EntityID: "forged" }, service(13));
    expect(outcomes(proof)).toMatchObject({ digest: "fails", signature: "holds", inclusion: "fails" });
    expect(proof.outcome).toBe("fails");
  });

  it("fails at inclusion when the Hash was mended too", async () => {
    const edited = { ...record(4), EntityID: "forged" };
    const { steps } = await proven(edited, service(13));
    const mended = { ...edited, Hash: steps[0]?.values["Hash computed here"] };
    expect(outcomes(await proven(mended, service(13)))).toMatchObject({ digest: "holds", inclusion: "fails" });
  });

  it("fails when another record stands in its place", async () => {
    const proof = await proven({ ...record(4) }, service(13, { inclusion: service(13).inclusion.bind(null, 5) }));
    expect(outcomes(proof)).toMatchObject({ digest: "holds", inclusion: "fails" });
  });

  it("stays open while no checkpoint covers it", async () => {
    expect(outcomes(await proven(record(9), service(8)))).toMatchObject({ signature: "holds", inclusion: "open" });
    const unsigned = await proven(record(9), service(0));
    expect([unsigned.outcome, outcomes(unsigned)]).toEqual([
      "open",
      { digest: "holds", key: "holds", signature: "open" },
    ]);
  });

  it("fails when the checkpoint is of another chain", async () => {
    const proof = await proven(record(1), service(13), {}, { ...chain, scopeKey: "another" });
    expect(outcomes(proof)).toEqual({ digest: "holds", key: "holds", signature: "holds", origin: "fails" });
  });

  it("fails when the signature or the key is forged", async () => {
    const forged = (proofs.checkpoints.at(-1)?.signedNote ?? "").replace("\n13\n", "\n12\n");
    const signature = await proven(record(1), service(13, { note: async () => forged }));
    expect(outcomes(signature)).toEqual({ digest: "holds", key: "holds", signature: "fails" });
    const key = await proven(record(1), service(13, { key: async () => "nonsense" }));
    expect(outcomes(key)).toEqual({ digest: "holds", key: "fails" });
  });

  it("fails when the chain is shorter than its checkpoint, or the service refuses that", async () => {
    expect(outcomes(await proven(record(1), service(13, { inclusion: async () => null }))).inclusion).toBe("fails");
    const refusing = service(13, { note: () => Promise.reject(new NoteError("It is not signed.")) });
    expect(outcomes(await proven(record(1), refusing))).toEqual({ digest: "holds", key: "holds", signature: "fails" });
    const broken = service(13, { note: () => Promise.reject(new Error("offline")) });
    await expect(proven(record(1), broken)).rejects.toThrow("offline");
  });

  it("fails for content without canonical form", async () => {
    const odd = await proven({ ...record(1), EntityID: "\ud800" }, service(13));
    expect(outcomes(odd)).toMatchObject({ digest: "fails", inclusion: "fails" });
  });

  it("fails for a record without a place, and for a path that is no base64", async () => {
    expect(outcomes(await proven({ ...record(1), RecordID: "1" }, service(13))).inclusion).toBe("fails");
    const odd = service(13, { inclusion: async () => ["%"] });
    expect(outcomes(await proven(record(1), odd)).inclusion).toBe("fails");
  });
});

describe("what the reader kept", () => {
  const note = (size: number): string => proofs.checkpoints.find((one) => one.size === size)?.signedNote ?? "";
  const otherKey = `oi-provenance/plant-a+00000000+${proofs.verifierKey.split(/\+.{8}\+/)[1] ?? ""}`;

  it("shows that the chain only grew", async () => {
    for (const size of [1, 5, 8, 13]) {
      const proof = await proven(record(1), service(13), { key: proofs.verifierKey, note: note(size) });
      expect([proof.outcome, outcomes(proof).growth]).toEqual(["holds", "holds"]);
    }
  });

  it("shows a chain that was cut short or rewritten", async () => {
    expect(outcomes(await proven(record(1), service(8), { note: note(13) })).growth).toBe("fails");
    const rewritten = service(13, { growth: async () => [] });
    expect(outcomes(await proven(record(1), rewritten, { note: note(5) })).growth).toBe("fails");
  });

  it("does not replace the checkpoint that the tab saw before", async () => {
    const rolledBack = await proven(record(1), service(8), { note: note(5), seen: note(13) });
    expect([rolledBack.outcome, outcomes(rolledBack)]).toMatchObject(["fails", { seen: "fails", growth: "holds" }]);
    const grown = await proven(record(1), service(13), { note: note(5), seen: note(8) });
    expect([grown.outcome, outcomes(grown)]).toMatchObject(["holds", { seen: "holds", growth: "holds" }]);
    const same = await proven(record(1), service(13), { note: note(8), seen: note(8) });
    expect(outcomes(same)).not.toHaveProperty("seen");
  });

  it("is the record that is shown, too", async () => {
    const same = await proven(record(3), service(13), { shown: JSON.parse(JSON.stringify(record(3))) });
    expect([same.outcome, outcomes(same).shown]).toEqual(["holds", "holds"]);
    for (const shown of [
      { ...record(3), EntityID: "another" },
      { ...record(3), Hash: "another" },
      { EntityID: "\ud800" },
    ]) {
      const other = await proven(record(3), service(13), { shown });
      expect([other.outcome, outcomes(other).shown, outcomes(other).inclusion]).toEqual(["fails", "fails", "holds"]);
    }
  });

  it("is refused when it is nothing to trust", async () => {
    expect(outcomes(await proven(record(1), service(13), { key: otherKey })).key).toBe("fails");
    expect(outcomes(await proven(record(1), service(13), { note: "nonsense" })).growth).toBe("fails");
  });

  it("counts more than the published key", async () => {
    const stranger = await createSigningKey();
    const swapped = service(13, { key: async () => stranger.line });
    const proof = await proven(record(1), swapped, { key: proofs.verifierKey });
    expect(outcomes(proof)).toMatchObject({ key: "fails", signature: "holds", inclusion: "holds" });
    expect(proof.outcome).toBe("fails");
  });
});

describe("a proof after the checkpoint key was rotated", () => {
  const findNote = (size: number): string => proofs.checkpoints.find((one) => one.size === size)?.signedNote ?? "";
  const getText = (note: string): string => `${note.slice(0, note.lastIndexOf("\n\n"))}\n`;

  /** Answers as a service with a new key that signed the newest checkpoint, whose retired key signed the vectors. */
  async function rotate(key: SigningKey, both: boolean, changes: Partial<Sources> = {}): Promise<Sources> {
    const note = findNote(13);
    const signature = await key.sign(getText(note));
    return service(13, {
      key: async () => key.line,
      keySet: async () => ({ keys: [key.jwk, retired] }),
      note: async () => (both ? note + signature : `${getText(note)}\n${signature}`),
      ...changes,
    });
  }

  const retired = JSON.parse(readFileSync(`${import.meta.dirname}/../../../tests/vectors/receipts.json`, "utf8")).jwks
    .keys[0];

  it("opens earlier checkpoints with retired keys", async () => {
    const key = await createSigningKey();
    for (const both of [true, false]) {
      const proof = await proven(record(1), await rotate(key, both), { note: findNote(5) });
      expect([proof.outcome, outcomes(proof).growth]).toEqual(["holds", "holds"]);
    }
  });

  it("holds under a retired key of the reader that signed the newest checkpoint, too", async () => {
    const kept = { key: proofs.verifierKey, note: findNote(5) };
    const proof = await proven(record(1), await rotate(await createSigningKey(), true), kept);
    expect([proof.outcome, outcomes(proof).key]).toEqual(["holds", "holds"]);
  });

  it("is undecided under a retired key of the reader that did not sign the newest checkpoint", async () => {
    const proof = await proven(record(1), await rotate(await createSigningKey(), false), { key: proofs.verifierKey });
    expect(proof.outcome).toBe("open");
    expect(outcomes(proof)).toEqual({ digest: "holds", key: "holds", signature: "open" });
  });

  it("is undecided with an earlier checkpoint of an unknown key, unless the chain contradicts it", async () => {
    const key = await createSigningKey();
    const lost = { keySet: async () => ({ keys: [key.jwk] }) };
    const proof = await proven(record(1), await rotate(key, false, lost), { note: findNote(5) });
    expect([proof.outcome, outcomes(proof).growth]).toEqual(["open", "open"]);
    const rewritten = await rotate(key, false, { ...lost, growth: async () => [] });
    expect(outcomes(await proven(record(1), rewritten, { note: findNote(5) })).growth).toBe("fails");
  });

  it("fails if the newest checkpoint is signed by a key that the service does not publish", async () => {
    const published = await createSigningKey();
    const proof = await proven(record(1), service(13, { key: async () => published.line }));
    expect(outcomes(proof)).toEqual({ digest: "holds", key: "holds", signature: "fails" });
    const invalid = service(13, { keySet: async () => ({ keys: [{ kty: "RSA" }] }) });
    expect(outcomes(await proven(record(1), invalid)).key).toBe("fails");
  });
});
