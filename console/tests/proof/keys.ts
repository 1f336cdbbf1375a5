// Checkpoint keys of tests, and their signatures.
import { type Bytes, toBase64 } from "@/proof/bytes.ts";

const NAME = "oi-provenance/plant-a";

/** A new key with its verifier key line, its JWK, and a function that signs the text of a note. */
export interface SigningKey {
  readonly line: string;
  readonly jwk: JsonWebKey;
  sign(text: string): Promise<string>;
}

/** Creates a checkpoint key. */
export async function createSigningKey(name = NAME): Promise<SigningKey> {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const line = await formatKeyLine(name, new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey)));
  const id = (line.split("+")[1]?.match(/../g) ?? []).map((digits) => Number.parseInt(digits, 16));
  const sign = async (text: string) => {
    const algorithm = { name: "ECDSA", hash: "SHA-256" };
    const raw = await crypto.subtle.sign(algorithm, pair.privateKey, new TextEncoder().encode(text));
    return `\u2014 ${name} ${toBase64(Uint8Array.from([...id, ...toDer(new Uint8Array(raw))]))}\n`;
  };
  return { line, jwk: await crypto.subtle.exportKey("jwk", pair.publicKey), sign };
}

/** Returns the verifier key line of a SubjectPublicKeyInfo. */
export async function formatKeyLine(name: string, spki: Bytes, type = 2): Promise<string> {
  const id = new Uint8Array(await crypto.subtle.digest("SHA-256", spki)).slice(0, 4);
  const hex = Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${name}+${hex}+${toBase64(Uint8Array.of(type, ...spki))}`;
}

/** Returns the DER form of r and s. */
export function toDer(raw: Bytes): Bytes {
  const [r, s] = [toInteger([...raw.slice(0, 32)]), toInteger([...raw.slice(32)])];
  return Uint8Array.of(0x30, r.length + s.length, ...r, ...s);
}

function toInteger(digits: number[]): number[] {
  while (digits.length > 1 && digits[0] === 0) digits.shift();
  const padded = (digits[0] ?? 0) > 0x7f ? [0, ...digits] : digits;
  return [2, padded.length, ...padded];
}
