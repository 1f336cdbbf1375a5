// The hash rule of a chain; see docs/explanation/audit-trail.md.
import canonicalize from "canonicalize";

import { encodeUtf8, sha256, toHex } from "./bytes.ts";

export type JsonObject = { readonly [name: string]: unknown };

const ID_DIGITS = 12;
const MAX_DEPTH = 128;

/** Returns the RFC 8785 text of a record without its `Hash`, the input of the hash.
 *
 * @throws RangeError if it is nested too deeply for a record.
 */
export function toCanonicalText(record: JsonObject): string {
  const { Hash: _, ...hashed } = record;
  if (isTooDeep(hashed)) throw new RangeError(`A record has at most ${MAX_DEPTH} levels.`);
  return canonicalize(hashed) ?? "";
}

function isTooDeep(record: JsonObject): boolean {
  let level: readonly unknown[] = [record];
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    level = level.filter(isNested).flatMap((value) => Object.values(value));
  }
  return level.some(isNested);
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns the correct `Hash` of a record: lowercase hexadecimal SHA-256 of its canonical text. */
export async function computeHash(record: JsonObject): Promise<string> {
  return toHex(await sha256(encodeUtf8(toCanonicalText(record))));
}

/** Returns the `PreviousHash` of a chain's first record. */
export async function computeGenesisHash(workspace: string, target: string, scopeKey = ""): Promise<string> {
  return toHex(await sha256(encodeUtf8(`oi-provenance/v1\n${workspace}\n${target}\n${scopeKey}`)));
}

/** Returns the RecordID of a sequence number: 12 digits, zero-padded. */
export function formatRecordId(sequence: number): string {
  return String(sequence).padStart(ID_DIGITS, "0");
}

/** Returns the sequence number of a RecordID; null for an invalid one. */
export function parseRecordId(id: unknown): number | null {
  return typeof id === "string" && /^[0-9]{12}$/.test(id) && Number(id) > 0 ? Number(id) : null;
}
