// Proves one record in the browser, step by step: digest, verifier key, signed checkpoint, chain, inclusion.
import { type Bytes, fromBase64, fromHex } from "./bytes.ts";
import { consistent, included } from "./merkle.ts";
import { type Checkpoint, openedCheckpoint, originOf, type VerifierKey, verifierKey } from "./notes.ts";
import { canonicalText, type JsonObject, recomputedHash, recordId, sequenceOf } from "./record.ts";
import { type Outcome, Proving, type Step } from "./steps.ts";

const HASH_BYTES = 32;

/** The chain that a record belongs to. */
export interface Chain {
  readonly workspace: string;
  readonly target: string;
  readonly scopeKey: string;
}

/** Where proofs come from; the service is asked, and believed in nothing that it does not prove. */
export interface Sources {
  /** Returns the line of the published verifier key. */
  key(): Promise<string>;
  /** Returns the newest signed note; null where none was made yet. Throws NoteError where the service refuses it. */
  note(): Promise<string | null>;
  /** Returns the audit path of a record in the tree of a size, base64; null where the chain has no such tree. */
  inclusion(sequence: number, size: number): Promise<readonly string[] | null>;
  /** Returns the proof that the tree of a size begins with that of an earlier one; as `inclusion`. */
  growth(from: number, size: number): Promise<readonly string[] | null>;
}

/** What the reader has from elsewhere or from before; stronger than what the service says now. */
export interface Kept {
  /** The record as the reader sees it. */
  readonly shown?: JsonObject | undefined;
  /** A verifier key line. */
  readonly key?: string | undefined;
  /** A signed note of the same chain. */
  readonly note?: string | undefined;
}

/** How a proof ended. */
export interface Proof {
  readonly outcome: Outcome;
  readonly steps: readonly Step[];
  /** The signed note that was opened, to be kept. */
  readonly note: string | null;
}

/**
 * Proves that a record, as the service gives it, is in its chain as the service signed it.
 *
 * What counts as the leaf is the digest of the content, not the Hash that stands beside it.
 *
 * @param told hears of each step as it ends.
 * @throws what the sources throw.
 */
export async function proveRecord(
  record: JsonObject,
  chain: Chain,
  sources: Sources,
  kept: Kept,
  told: (step: Step) => void,
): Promise<Proof> {
  const proving = new Proving(told);
  shownStep(record, kept, proving);
  const digest = await digestStep(record, proving);
  const note = await checkpointSteps(record, digest, chain, sources, kept, proving);
  return { outcome: proving.outcome, steps: proving.steps, note };
}

function shownStep(record: JsonObject, { shown }: Kept, proving: Proving): void {
  if (!shown) return;
  const [now, before] = [textOf(record), textOf(shown)];
  if (now === before && record.Hash === shown.Hash) {
    proving.say("shown", "holds", "What the service gives now is what the page shows.");
  } else {
    const values = { "What the page shows": before, "What the service gives now": now };
    proving.say(
      "shown",
      "fails",
      "The service gives something else now than what the page shows; this is checked below.",
      values,
    );
  }
}

function textOf(record: JsonObject): string {
  try {
    return canonicalText(record);
  } catch {
    return JSON.stringify(record);
  }
}

async function digestStep(record: JsonObject, proving: Proving): Promise<string> {
  const digest = await recomputedHash(record).catch(() => "");
  const stored = String(record.Hash);
  const values = {
    "Digest computed here": digest || "none: the content has no canonical form",
    "Hash in the record": stored,
  };
  const says =
    digest === stored
      ? "The content has the digest that stands in the record as its Hash."
      : "The content does not have the digest that stands in the record as its Hash.";
  proving.say("digest", digest === stored ? "holds" : "fails", says, values);
  return digest;
}

async function checkpointSteps(
  record: JsonObject,
  digest: string,
  chain: Chain,
  sources: Sources,
  kept: Kept,
  proving: Proving,
): Promise<string | null> {
  const key = await keyStep(sources, kept, proving);
  if (!key) return null;
  const found = await proving.trust("signature", "The service refuses its own checkpoint.", async () => ({
    note: await sources.note(),
  }));
  if (!found) return null;
  const { note } = found;
  if (note === null) {
    proving.say(
      "signature",
      "open",
      "No checkpoint of this chain was signed yet; one is made within a minute of growth.",
    );
    return null;
  }
  const checkpoint = await proving.trust("signature", "The checkpoint is refused.", () => openedCheckpoint(note, key));
  if (!checkpoint) return null;
  proving.say(
    "signature",
    "holds",
    `The checkpoint over ${checkpoint.size} records carries the signature of this key.`,
    {
      "Signed note": note,
    },
  );
  if (!originStep(checkpoint, chain, proving)) return null;
  await growthStep(checkpoint, key, chain, sources, kept, proving);
  await inclusionStep(record, digest, checkpoint, sources, proving);
  return note;
}

async function keyStep(sources: Sources, kept: Kept, proving: Proving): Promise<VerifierKey | null> {
  const published = await sources.key();
  const key = await proving.trust("key", "The published verifier key is refused.", () => verifierKey(published));
  if (!key) return null;
  const values = { "Published key": published.trim() };
  if (!kept.key) {
    proving.say("key", "holds", `The service publishes the P-256 key ${key.id} of ${key.name}.`, values);
    return key;
  }
  const own = await proving.trust("key", "The key that you gave is refused.", () => verifierKey(kept.key ?? ""));
  if (!own) return null;
  if (kept.key.trim() === published.trim()) {
    proving.say("key", "holds", `The service publishes the very key that you gave, ${key.id} of ${key.name}.`, values);
  } else {
    const compared = { ...values, "Key that you gave": kept.key.trim() };
    proving.say(
      "key",
      "fails",
      "The service publishes another key than the one that you gave; yours is used.",
      compared,
    );
  }
  return own;
}

function originStep(checkpoint: Checkpoint, chain: Chain, proving: Proving): boolean {
  const expected = originOf(chain.workspace, chain.target, chain.scopeKey);
  const values = { "Origin in the checkpoint": checkpoint.origin, "Origin of this chain": expected };
  if (checkpoint.origin === expected) {
    proving.say("origin", "holds", "The checkpoint belongs to this workspace, target and scope.", values);
    return true;
  }
  proving.say("origin", "fails", "The checkpoint belongs to another chain.", values);
  return false;
}

async function growthStep(
  checkpoint: Checkpoint,
  key: VerifierKey,
  chain: Chain,
  sources: Sources,
  kept: Kept,
  proving: Proving,
): Promise<void> {
  const { note } = kept;
  if (!note) return;
  const earlier = await proving.trust("growth", "The checkpoint that was kept is refused.", () =>
    openedCheckpoint(note, key),
  );
  if (!earlier) return;
  if (earlier.origin !== originOf(chain.workspace, chain.target, chain.scopeKey)) {
    proving.say("growth", "fails", "The checkpoint that was kept belongs to another chain.");
    return;
  }
  const sizes = { "Records then": String(earlier.size), "Records now": String(checkpoint.size) };
  if (earlier.size > checkpoint.size) {
    proving.say("growth", "fails", "The chain is shorter than it was in the checkpoint that was kept.", sizes);
    return;
  }
  const hashes = decoded(earlier.size === checkpoint.size ? [] : await sources.growth(earlier.size, checkpoint.size));
  const grew = hashes && (await consistent(earlier.size, checkpoint.size, earlier.root, checkpoint.root, hashes));
  if (grew) {
    proving.say(
      "growth",
      "holds",
      "The chain begins with all records of the checkpoint that was kept, unchanged.",
      sizes,
    );
  } else {
    proving.say(
      "growth",
      "fails",
      "The chain is not the one of the checkpoint that was kept: it was rewritten.",
      sizes,
    );
  }
}

async function inclusionStep(
  record: JsonObject,
  digest: string,
  checkpoint: Checkpoint,
  sources: Sources,
  proving: Proving,
): Promise<void> {
  const sequence = sequenceOf(record.RecordID);
  const leaf = fromHex(digest);
  if (sequence === null || leaf?.length !== HASH_BYTES) {
    proving.say("inclusion", "fails", "The record has no place in the chain, or no digest.");
    return;
  }
  if (sequence > checkpoint.size) {
    const says = `The newest checkpoint ends with record ${recordId(checkpoint.size)}; the next one will cover this record.`;
    proving.say("inclusion", "open", says);
    return;
  }
  const answered = await sources.inclusion(sequence, checkpoint.size);
  if (answered === null) {
    proving.say("inclusion", "fails", "The service has no proof: the chain is shorter than its signed checkpoint.");
    return;
  }
  const path = decoded(answered);
  const values = {
    "Leaf (digest of the content)": digest,
    "Audit path": answered.join("\n") || "(empty: the only record)",
  };
  if (path && (await included(leaf, sequence - 1, checkpoint.size, path, checkpoint.root))) {
    proving.say(
      "inclusion",
      "holds",
      `The audit path leads from this content to the signed root: ${count(path.length)}.`,
      values,
    );
  } else {
    proving.say(
      "inclusion",
      "fails",
      "The audit path does not lead from this content to the signed root: the record was changed.",
      values,
    );
  }
}

function decoded(hashes: readonly string[] | null): Bytes[] | null {
  if (hashes === null) return null;
  const bytes = hashes.map(fromBase64);
  return bytes.every((one) => one?.length === HASH_BYTES) ? (bytes as Bytes[]) : null;
}

function count(hashes: number): string {
  return hashes === 1 ? "1 hash" : `${hashes} hashes`;
}
