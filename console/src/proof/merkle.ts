// Merkle proofs over SHA-256: RFC 6962, by the algorithms of RFC 9162.
import { areEqual, type Bytes, concatenate, sha256 } from "./bytes.ts";

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** Returns the hash of a leaf. */
export function hashLeaf(data: Bytes): Promise<Bytes> {
  return sha256(concatenate(LEAF, data));
}

/** Returns the hash of an inner node. */
export function hashNode(left: Bytes, right: Bytes): Promise<Bytes> {
  return sha256(concatenate(NODE, left, right));
}

/**
 * Position on the path from a leaf to the root: the node's index in its level, and the last index there.
 * Sequences reach 10^12, which exceeds JavaScript's bit operators.
 */
class Place {
  constructor(
    private place: number,
    private last: number,
  ) {}

  /** At the root. */
  get top(): boolean {
    return this.last === 0;
  }

  /** The node is its parent's right child. */
  get odd(): boolean {
    return this.place % 2 === 1;
  }

  /** The sibling in the proof is on the left. */
  get right(): boolean {
    return this.odd || this.place === this.last;
  }

  /** Moves up past levels in which the node has no sibling. */
  skip(): void {
    while (!this.odd && this.place !== 0) this.up();
  }

  /** Moves up one level. */
  up(): void {
    this.place = Math.floor(this.place / 2);
    this.last = Math.floor(this.last / 2);
  }
}

/**
 * Tells whether an audit path proves that a tree contains a leaf (RFC 9162 section 2.1.3.2).
 *
 * @param data of the leaf.
 * @param index of the leaf, from 0.
 * @param size number of leaves of the tree.
 * @param path the proof.
 * @param root of the tree, from a signed checkpoint.
 */
export async function isIncluded(
  data: Bytes,
  index: number,
  size: number,
  path: readonly Bytes[],
  root: Bytes,
): Promise<boolean> {
  if (!isPlace(index) || !isPlace(size) || index >= size) return false;
  const place = new Place(index, size - 1);
  let node = await hashLeaf(data);
  for (const step of path) {
    if (place.top) return false;
    if (place.right) {
      node = await hashNode(step, node);
      place.skip();
    } else {
      node = await hashNode(node, step);
    }
    place.up();
  }
  return place.top && areEqual(node, root);
}

/**
 * Tells whether a proof shows that a tree begins with all leaves of an earlier one (RFC 9162 section 2.1.4.2).
 *
 * @param old size of the earlier tree.
 * @param size of the later tree.
 */
export async function isConsistent(
  old: number,
  size: number,
  oldRoot: Bytes,
  root: Bytes,
  proof: readonly Bytes[],
): Promise<boolean> {
  if (!isPlace(old) || !isPlace(size) || old < 1 || old > size) return false;
  if (old === size) return proof.length === 0 && areEqual(oldRoot, root);
  const [first, ...rest] = Number.isInteger(Math.log2(old)) ? [oldRoot, ...proof] : proof;
  if (!first) return false;
  const place = new Place(old - 1, size - 1);
  while (place.odd) place.up();
  let [older, newer] = [first, first];
  for (const step of rest) {
    if (place.top) return false;
    if (place.right) {
      [older, newer] = [await hashNode(step, older), await hashNode(step, newer)];
      place.skip();
    } else {
      newer = await hashNode(newer, step);
    }
    place.up();
  }
  return place.top && areEqual(older, oldRoot) && areEqual(newer, root);
}

function isPlace(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}
