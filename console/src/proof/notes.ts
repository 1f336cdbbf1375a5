// Signed checkpoints: C2SP signed-note and tlog-checkpoint, signature type 0x02 (ECDSA over P-256).
import { type Bytes, encodeUtf8, fromBase64, sha256, toHex } from "./bytes.ts";
import { exportP256Jwk, importP256Key, verifySignature } from "./ecdsa.ts";

const ECDSA_TYPE = 0x02;
const ID_BYTES = 4;
const HASH_BYTES = 32;
const MAX_NOTE_BYTES = 1_000_000;

/** An untrusted note or verifier key; the message explains why. */
export class NoteError extends Error {}

/** The public key of a signer. */
export interface VerifierKey {
  /** As on signature lines. */
  readonly name: string;
  /** The first four bytes of SHA-256 over the SubjectPublicKeyInfo, hexadecimal. */
  readonly id: string;
  /** The SubjectPublicKeyInfo, hexadecimal. */
  readonly spki: string;
  readonly key: CryptoKey;
}

/** The content of a signed checkpoint. */
export interface Checkpoint {
  /** Names the chain; see {@link buildOrigin}. */
  readonly origin: string;
  /** Number of records that it covers. */
  readonly size: number;
  /** RFC 6962 root. */
  readonly root: Bytes;
}

/** A checkpoint that known keys signed validly, or that only an unknown key signed; then it is not trusted. */
export interface OpenedCheckpoint extends Checkpoint {
  /** Id of the unknown key that signed it, as it states; empty if a known key signed it. */
  readonly unknownKey: string;
}

/** A signature line of a note. */
interface NoteSignature {
  readonly name: string;
  readonly id: string;
  readonly signature: Bytes;
}

/**
 * Returns the key of a `name+id+base64` line.
 *
 * @throws NoteError if the line is malformed, has another signature type or curve, or an id that does not match the key.
 */
export async function parseVerifierKey(line: string): Promise<VerifierKey> {
  const [, name, id, encoded] = /^([^+\s]+)\+([0-9a-fA-F]{8})\+(\S+)$/.exec(line.trim()) ?? [];
  const decoded = encoded === undefined ? null : fromBase64(encoded);
  if (name === undefined || id === undefined || !decoded) throw new NoteError("It is not of the form name+id+key.");
  if (decoded[0] !== ECDSA_TYPE) throw new NoteError("It is not of signature type 0x02 (ECDSA).");
  const key = await createVerifierKey(name, decoded.slice(1));
  if (key.id !== id.toLowerCase()) throw new NoteError(`Its id is ${id}, but the key has the id ${key.id}.`);
  return key;
}

/**
 * Returns the keys of a JWK set, which contains no names.
 *
 * @param name on the signature lines of all keys of the workspace.
 * @throws NoteError if the set is malformed, or a key is not on the curve P-256.
 */
export async function parseKeySet(set: unknown, name: string): Promise<readonly VerifierKey[]> {
  const keys = (set as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw new NoteError("It is not a JWK set.");
  return await Promise.all(
    keys.map(async (jwk: unknown) => {
      const spki = await exportP256Jwk(jwk as JsonWebKey);
      if (!spki) throw new NoteError("A key of the JWK set is not a public key on the curve P-256.");
      return await createVerifierKey(name, spki);
    }),
  );
}

async function createVerifierKey(name: string, spki: Bytes): Promise<VerifierKey> {
  const key = await importP256Key(spki);
  if (!key) throw new NoteError("It is not a public key on the curve P-256.");
  return { name, id: toHex((await sha256(spki)).slice(0, ID_BYTES)), spki: toHex(spki), key };
}

/** Returns the origin of a chain's checkpoints: workspace, target and, of a domain chain, the scope, encoded. */
export function buildOrigin(workspace: string, target: string, scopeKey = ""): string {
  const scope = scopeKey ? `/${quote(scopeKey)}` : "";
  return `oi-provenance/${quote(workspace)}/${target}${scope}`;
}

/**
 * Verifies the signatures of a checkpoint by known keys and returns its content.
 *
 * If only an unknown key of the same name signed it, such as a retired one, the content is not trusted: it can only
 * reveal faults.
 *
 * @param keys all known keys, at least one.
 * @throws NoteError if it is not a checkpoint, no key of this name signed it, or the signature of a known key is invalid.
 */
export async function openCheckpoint(note: string, keys: readonly VerifierKey[]): Promise<OpenedCheckpoint> {
  const { text, lines } = splitNote(note);
  const signatures = lines.map(parseSignature);
  let known = false;
  for (const key of keys) {
    for (const { signature } of signatures.filter(({ name, id }) => name === key.name && id === key.id)) {
      if (!(await verifySignature(encodeUtf8(text), signature, key.key)))
        throw new NoteError(`The signature of ${key.name} is wrong.`);
      known = true;
    }
  }
  const unknownKey = known ? "" : requireUnknownKey(signatures, keys);
  return { ...parseCheckpoint(text), unknownKey };
}

/** Returns the id of the first unknown key with the name of a known key; throws a NoteError if there is none. */
function requireUnknownKey(signatures: readonly NoteSignature[], keys: readonly VerifierKey[]): string {
  const isKnown = ({ id }: NoteSignature) => keys.some((key) => key.id === id);
  const unknown = signatures.find(({ name }) => keys.some((key) => key.name === name));
  if (!unknown || signatures.some(isKnown)) throw new NoteError(`It is not signed by ${keys[0]?.name}.`);
  return unknown.id;
}

function splitNote(note: string): { text: string; lines: readonly string[] } {
  const blank = note.lastIndexOf("\n\n");
  const signatures = note.slice(blank + 2);
  const control = Array.from(note).some((character) => character < " " && character !== "\n");
  if (blank < 0 || control || !signatures.endsWith("\n") || encodeUtf8(note).length > MAX_NOTE_BYTES)
    throw createFormatError();
  return { text: note.slice(0, blank + 1), lines: signatures.split("\n").slice(0, -1) };
}

function parseSignature(line: string): NoteSignature {
  const [, name, encoded] = /^\u2014 (\S+) (\S+)$/.exec(line) ?? [];
  const decoded = encoded === undefined ? null : fromBase64(encoded);
  if (name === undefined || !decoded || decoded.length <= ID_BYTES) throw createFormatError();
  return { name, id: toHex(decoded.slice(0, ID_BYTES)), signature: decoded.slice(ID_BYTES) };
}

function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split("\n").slice(0, -1);
  const [origin, size, encoded] = lines;
  const root = encoded === undefined ? null : fromBase64(encoded);
  const canonical = size !== undefined && /^(?:0|[1-9][0-9]{0,14})$/.test(size);
  if (!origin || !canonical || root?.length !== HASH_BYTES || !lines.every((line) => line !== "")) {
    throw new NoteError("It is signed, but it is not a checkpoint.");
  }
  return { origin, size: Number(size), root };
}

/** Percent-encodes as in RFC 3986: all but letters, digits and `-._~`; `encodeURIComponent` excludes five more. */
function quote(text: string): string {
  const encoded = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replace(/[!'()*]/g, encoded);
}

function createFormatError(): NoteError {
  return new NoteError("It is not a signed note.");
}
