import { formatQuantity } from "@/format.ts";
// Proof of one record in the browser: digest, verifier key, signed checkpoint, chain, inclusion.
import { type Bytes, fromBase64, fromHex } from "./bytes.ts";
import { isConsistent, isIncluded } from "./merkle.ts";
import {
  buildOrigin,
  type Checkpoint,
  type OpenedCheckpoint,
  openCheckpoint,
  parseKeySet,
  parseVerifierKey,
  type VerifierKey,
} from "./notes.ts";
import { computeHash, formatRecordId, type JsonObject, parseRecordId, toCanonicalText } from "./record.ts";
import { type Outcome, ProofSteps, type Step } from "./steps.ts";

const HASH_BYTES = 32;

/** The chain that a record belongs to. */
export interface Chain {
  readonly workspace: string;
  readonly target: string;
  readonly scopeKey: string;
}

/** Sources of a proof; the browser trusts no reply without verification. */
export interface Sources {
  /** Returns the line of the published verifier key. */
  key(): Promise<string>;
  /** Returns the JWK set of all published keys, current and retired. */
  keySet(): Promise<unknown>;
  /** Returns the newest signed note; null if there is none. Throws NoteError if the service rejects it. */
  note(): Promise<string | null>;
  /** Returns the audit path of a record in the tree of a size, base64; null if the chain has no such tree. */
  inclusion(sequence: number, size: number): Promise<readonly string[] | null>;
  /** Returns the proof that the tree of a size begins with that of an earlier one; null as for `inclusion`. */
  growth(from: number, size: number): Promise<readonly string[] | null>;
}

/** The reader's own evidence; it takes precedence over the service's current replies. */
export interface OwnEvidence {
  /** The record on the page. */
  readonly shown?: JsonObject | undefined;
  /** A verifier key line. */
  readonly key?: string | undefined;
  /** A signed note of the same chain. */
  readonly note?: string | undefined;
  /** The signed note of the same chain that an earlier proof in this tab opened. */
  readonly seen?: string | undefined;
}

/** How a proof ended. */
export interface Proof {
  readonly outcome: Outcome;
  readonly steps: readonly Step[];
  /** The opened signed note, to remember. */
  readonly note: string | null;
}

/**
 * Proves that the signed chain contains a record.
 *
 * The leaf is the digest of the content, not the Hash in the record.
 *
 * @param told receives each completed step. @throws the errors of the sources.
 */
export async function proveRecord(
  record: JsonObject,
  chain: Chain,
  sources: Sources,
  kept: OwnEvidence,
  told: (step: Step) => void,
): Promise<Proof> {
  const proving = new ProofSteps(told);
  compareRecord(record, kept, proving);
  const digest = await checkDigest(record, proving);
  const note = await checkCheckpoint(record, digest, chain, sources, kept, proving);
  return { outcome: proving.outcome, steps: proving.steps, note };
}

function compareRecord(record: JsonObject, { shown }: OwnEvidence, proving: ProofSteps): void {
  if (!shown) return;
  const [now, before] = [formatRecord(record), formatRecord(shown)];
  if (now === before && record.Hash === shown.Hash) {
    proving.add("shown", "holds", "The service's current record equals the one on the page.");
  } else {
    const values = { "Record on the page": before, "Current record of the service": now };
    proving.add(
      "shown",
      "fails",
      "The service's current record differs from the one on the page; the current one is checked below.",
      values,
    );
  }
}

function formatRecord(record: JsonObject): string {
  try {
    return toCanonicalText(record);
  } catch {
    return JSON.stringify(record);
  }
}

async function checkDigest(record: JsonObject, proving: ProofSteps): Promise<string> {
  const digest = await computeHash(record).catch(() => "");
  const stored = String(record.Hash);
  const values = {
    "Hash computed here": digest || "none: the content has no canonical form",
    "Hash in the record": stored,
  };
  const says =
    digest === stored
      ? "The hash of the content equals the Hash in the record."
      : "The hash of the content differs from the Hash in the record.";
  proving.add("digest", digest === stored ? "holds" : "fails", says, values);
  return digest;
}

async function checkCheckpoint(
  record: JsonObject,
  digest: string,
  chain: Chain,
  sources: Sources,
  kept: OwnEvidence,
  proving: ProofSteps,
): Promise<string | null> {
  const keys = await checkKey(sources, kept, proving);
  if (!keys) return null;
  const found = await proving.attempt("signature", "The service rejects its own checkpoint.", async () => ({
    note: await sources.note(),
  }));
  if (!found) return null;
  const { note } = found;
  if (note === null) {
    proving.add(
      "signature",
      "open",
      "This chain has no signed checkpoint yet; the service signs one within a minute of a new record.",
    );
    return null;
  }
  const checkpoint = await openNewestCheckpoint(note, keys, proving);
  if (!checkpoint || !checkOrigin(checkpoint, chain, proving)) return null;
  // The reader's note must not replace the remembered one, which can reveal a rollback to a state between both.
  if (kept.seen && kept.seen !== kept.note) {
    await checkGrowth("seen", kept.seen, checkpoint, keys, chain, sources, proving);
  }
  if (kept.note) await checkGrowth("growth", kept.note, checkpoint, keys, chain, sources, proving);
  await checkInclusion(record, digest, checkpoint, sources, proving);
  return note;
}

async function openNewestCheckpoint(note: string, keys: Keys, proving: ProofSteps): Promise<Checkpoint | null> {
  const checkpoint = await proving.attempt("signature", "The checkpoint is rejected.", () =>
    openCheckpoint(note, keys.newest),
  );
  if (!checkpoint) return null;
  const values = { "Signed note": note };
  if (!checkpoint.unknownKey) {
    const size = formatQuantity(checkpoint.size, "record");
    proving.add("signature", "holds", `The checkpoint over ${size} has a valid signature of this key.`, values);
    return checkpoint;
  }
  if (keys.isOwnRetired) {
    const says = `The service retired your key; the newest checkpoint is signed by the key ${checkpoint.unknownKey} only. Obtain that key from the source of yours.`;
    proving.add("signature", "open", says, values);
  } else {
    const says = `The checkpoint is signed by the key ${checkpoint.unknownKey}, which is not the key of this proof.`;
    proving.add("signature", "fails", says, values);
  }
  return null;
}

/** The keys of a proof. */
interface Keys {
  /** Keys that may have signed the newest checkpoint: the reader's own, else all published ones. */
  readonly newest: readonly VerifierKey[];
  /** All known keys, for earlier checkpoints. */
  readonly all: readonly VerifierKey[];
  /** Whether the reader's own key is a published key, but not the current one. */
  readonly isOwnRetired: boolean;
}

async function checkKey(sources: Sources, kept: OwnEvidence, proving: ProofSteps): Promise<Keys | null> {
  const [line, set] = await Promise.all([sources.key(), sources.keySet()]);
  const published = await proving.attempt("key", "The published verifier keys are rejected.", async () => {
    const key = await parseVerifierKey(line);
    return [key, ...(await parseKeySet(set, key.name)).filter(({ spki }) => spki !== key.spki)] as const;
  });
  if (!published) return null;
  const [current, ...retired] = published;
  const retiredIds = retired.map(({ id }) => id).join(", ");
  const values = { "Published key": line.trim(), ...(retiredIds && { "Retired keys": retiredIds }) };
  if (!kept.key) {
    proving.add("key", "holds", `The service publishes the P-256 key ${current.id} of ${current.name}.`, values);
    return { newest: published, all: published, isOwnRetired: false };
  }
  const own = await proving.attempt("key", "Your verifier key is rejected.", () => parseVerifierKey(kept.key ?? ""));
  if (!own) return null;
  const isPublished = (key: VerifierKey) => key.spki === own.spki && key.name === own.name;
  const isOwnRetired = retired.some(isPublished);
  const compared = { ...values, "Your key": kept.key.trim() };
  if (isPublished(current)) {
    proving.add("key", "holds", `The service publishes your verifier key, ${own.id} of ${own.name}.`, values);
  } else if (isOwnRetired) {
    const says = `The service publishes your verifier key, ${own.id} of ${own.name}, as a retired key. The proof uses your key.`;
    proving.add("key", "holds", says, compared);
  } else {
    proving.add("key", "fails", "The service publishes different keys. The proof uses your key.", compared);
  }
  return { newest: [own], all: [own, ...published.filter((key) => !isPublished(key))], isOwnRetired };
}

function checkOrigin(checkpoint: Checkpoint, chain: Chain, proving: ProofSteps): boolean {
  const expected = buildOrigin(chain.workspace, chain.target, chain.scopeKey);
  const values = { "Origin in the checkpoint": checkpoint.origin, "Origin of this chain": expected };
  if (checkpoint.origin === expected) {
    proving.add("origin", "holds", "The checkpoint belongs to this workspace, target and scope.", values);
    return true;
  }
  proving.add("origin", "fails", "The checkpoint belongs to another chain.", values);
  return false;
}

async function checkGrowth(
  step: "seen" | "growth",
  note: string,
  checkpoint: Checkpoint,
  keys: Keys,
  chain: Chain,
  sources: Sources,
  proving: ProofSteps,
): Promise<void> {
  const earlier = await proving.attempt(step, "The earlier checkpoint is rejected.", () =>
    openCheckpoint(note, keys.all),
  );
  if (!earlier) return;
  if (earlier.origin !== buildOrigin(chain.workspace, chain.target, chain.scopeKey)) {
    proving.add(step, "fails", "The earlier checkpoint belongs to another chain.");
    return;
  }
  const sizes = { "Records then": String(earlier.size), "Records now": String(checkpoint.size) };
  if (earlier.size > checkpoint.size) {
    proving.add(step, "fails", "The chain is shorter than in the earlier checkpoint.", sizes);
  } else if (!(await hasGrown(earlier, checkpoint, sources))) {
    const says = "The chain does not contain the earlier checkpoint's records: it was rewritten.";
    proving.add(step, "fails", says, sizes);
  } else if (earlier.unknownKey) {
    const says = `The chain begins with the records of the earlier checkpoint, but the service no longer publishes the key ${earlier.unknownKey} that signed it.`;
    proving.add(step, "open", says, sizes);
  } else {
    proving.add(step, "holds", "The chain begins with all records of the earlier checkpoint, unchanged.", sizes);
  }
}

async function hasGrown(earlier: OpenedCheckpoint, checkpoint: Checkpoint, sources: Sources): Promise<boolean> {
  const grown = earlier.size === checkpoint.size ? [] : await sources.growth(earlier.size, checkpoint.size);
  const hashes = decodeHashes(grown);
  return hashes !== null && (await isConsistent(earlier.size, checkpoint.size, earlier.root, checkpoint.root, hashes));
}

async function checkInclusion(
  record: JsonObject,
  digest: string,
  checkpoint: Checkpoint,
  sources: Sources,
  proving: ProofSteps,
): Promise<void> {
  const sequence = parseRecordId(record.RecordID);
  const leaf = fromHex(digest);
  if (sequence === null || leaf?.length !== HASH_BYTES) {
    proving.add("inclusion", "fails", "The record has no valid sequence, or no hash.");
    return;
  }
  if (sequence > checkpoint.size) {
    const says = `The newest checkpoint ends with record ${formatRecordId(checkpoint.size)}; the next one will cover this record.`;
    proving.add("inclusion", "open", says);
    return;
  }
  const answered = await sources.inclusion(sequence, checkpoint.size);
  if (answered === null) {
    proving.add("inclusion", "fails", "The service has no proof: the chain is shorter than its signed checkpoint.");
    return;
  }
  const path = decodeHashes(answered);
  const values = {
    "Leaf (hash of the content)": digest,
    "Audit path": answered.join("\n") || "(empty: the only record)",
  };
  if (path && (await isIncluded(leaf, sequence - 1, checkpoint.size, path, checkpoint.root))) {
    proving.add(
      "inclusion",
      "holds",
      `The audit path leads from this content to the signed root: ${formatHashCount(path.length)}.`,
      values,
    );
  } else {
    proving.add(
      "inclusion",
      "fails",
      "The audit path does not lead from this content to the signed root: the record was changed.",
      values,
    );
  }
}

function decodeHashes(hashes: readonly string[] | null): Bytes[] | null {
  if (hashes === null) return null;
  const bytes = hashes.map(fromBase64);
  return bytes.every((one) => one?.length === HASH_BYTES) ? (bytes as Bytes[]) : null;
}

function formatHashCount(hashes: number): string {
  return hashes === 1 ? "1 hash" : `${hashes} hashes`;
}
