import { describe, expect, it } from "vitest";
import { type Bytes, fromBase64, fromHex } from "@/proof/bytes.ts";
import { hashLeaf, hashNode, isConsistent, isIncluded } from "@/proof/merkle.ts";
import { proofs } from "./vectors.ts";

function hash(text: string | undefined): Bytes {
  const bytes = fromBase64(text ?? "");
  if (!bytes) throw new Error("no base64");
  return bytes;
}

const leaf = (sequence: number): Bytes => fromHex(proofs.records[sequence - 1]?.Hash ?? "") ?? new Uint8Array();
const root = (size: number): Bytes => hash(proofs.checkpoints.find((one) => one.size === size)?.rootHash);
const changed = (bytes: Bytes): Bytes => bytes.map((byte, place) => (place === 7 ? byte ^ 1 : byte));

describe("inclusion", () => {
  it("holds for each record in each tree that has it", async () => {
    for (const { sequence, size, hashes } of proofs.inclusion) {
      expect(await isIncluded(leaf(sequence), sequence - 1, size, hashes.map(hash), root(size))).toBe(true);
    }
  });

  it("fails when leaf, place, size, path or root is another", async () => {
    for (const { sequence, size, hashes } of proofs.inclusion.filter((one) => one.size > 1)) {
      const path = hashes.map(hash);
      const [index, data, top] = [sequence - 1, leaf(sequence), root(size)];
      expect(await isIncluded(changed(data), index, size, path, top)).toBe(false);
      expect(await isIncluded(data, (index + 1) % size, size, path, top)).toBe(false);
      expect(await isIncluded(data, index, size, path.slice(1), top)).toBe(false);
      expect(await isIncluded(data, index, size, [...path, top], top)).toBe(false);
      expect(await isIncluded(data, index, size, [...path.slice(1), changed(path[0] ?? top)], top)).toBe(false);
      expect(await isIncluded(data, index, size, path, changed(top))).toBe(false);
      expect(await isIncluded(data, size, size, path, top)).toBe(false);
      expect(await isIncluded(data, -1, size, path, top)).toBe(false);
      expect(await isIncluded(data, 0.5, size, path, top)).toBe(false);
    }
  });

  it("holds beyond the 32 bits of JavaScript's bit operators", async () => {
    const size = 2 ** 33;
    const index = 2 ** 32 + 5;
    let [node, place] = [await hashLeaf(leaf(1)), index];
    const path = Array.from({ length: 33 }, (_, level) => new Uint8Array(32).fill(level));
    for (const step of path) {
      node = place % 2 === 1 ? await hashNode(step, node) : await hashNode(node, step);
      place = Math.floor(place / 2);
    }
    expect(await isIncluded(leaf(1), index, size, path, node)).toBe(true);
    expect(await isIncluded(leaf(1), index - 2 ** 32, size, path, node)).toBe(false);
  });
});

describe("growth", () => {
  const earlier = proofs.growth;

  it("holds from each tree to each later one", async () => {
    for (const { from, size, fromRoot, hashes } of earlier) {
      expect(await isConsistent(from, size, hash(fromRoot), root(size), hashes.map(hash))).toBe(true);
    }
  });

  it("fails when a root, a size or the proof is another", async () => {
    for (const { from, size, fromRoot, hashes } of earlier) {
      const [old, top, path] = [hash(fromRoot), root(size), hashes.map(hash)];
      expect(await isConsistent(from, size, changed(old), top, path)).toBe(false);
      expect(await isConsistent(from, size, old, changed(top), path)).toBe(false);
      expect(await isConsistent(from, size, old, top, [...path, top])).toBe(false);
      expect(await isConsistent(size + 1, size, old, top, path)).toBe(false);
      expect(await isConsistent(0, size, old, top, path)).toBe(false);
      if (path.length > 0) expect(await isConsistent(from, size, old, top, path.slice(1))).toBe(false);
    }
  });
});
