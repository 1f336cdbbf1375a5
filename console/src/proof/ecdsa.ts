// Conversion of ECDSA signatures from DER, as in notes, to r‖s, as for WebCrypto.
import { type Bytes, concatenate, getWebCrypto } from "./bytes.ts";

const SEQUENCE = 0x30;
const INTEGER = 0x02;
/** Bytes of a coordinate on P-256. */
export const P256_BYTES = 32;

/** Returns r‖s, 64 bytes, of a DER signature over P-256; null for invalid DER. */
export function toRawSignature(der: Bytes): Bytes | null {
  const [tag, length] = der;
  if (tag !== SEQUENCE || length === undefined || length > 0x7f || length !== der.length - 2) return null;
  const r = readInteger(der, 2);
  const s = r && readInteger(der, r.end);
  return r && s && s.end === der.length ? concatenate(r.number, s.number) : null;
}

/** Verifies a DER signature over SHA-256 of a message. */
export async function verifySignature(message: Bytes, signature: Bytes, key: CryptoKey): Promise<boolean> {
  const raw = toRawSignature(signature);
  return raw !== null && getWebCrypto().verify({ name: "ECDSA", hash: "SHA-256" }, key, raw, message);
}

/** Returns the P-256 key of a DER SubjectPublicKeyInfo; null for any other key. */
export async function importP256Key(spki: Bytes): Promise<CryptoKey | null> {
  const subtle = getWebCrypto();
  try {
    return await subtle.importKey("spki", spki, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]);
  } catch {
    return null;
  }
}

/** Returns the DER SubjectPublicKeyInfo of a public P-256 key in JWK form; null for anything else. */
export async function exportP256Jwk(jwk: JsonWebKey): Promise<Bytes | null> {
  const subtle = getWebCrypto();
  try {
    const { kty, crv, x, y } = jwk;
    const curve = { name: "ECDSA", namedCurve: "P-256" };
    const key = await subtle.importKey("jwk", { kty, crv, x, y } as JsonWebKey, curve, true, ["verify"]);
    return new Uint8Array(await subtle.exportKey("spki", key));
  } catch {
    return null;
  }
}

function readInteger(der: Bytes, start: number): { number: Bytes; end: number } | null {
  const length = der[start + 1];
  if (der[start] !== INTEGER || !length) return null;
  const end = start + 2 + length;
  const digits = der.slice(start + 2, end);
  const [first = 0, second = 0] = digits;
  const padded = first === 0 && length > 1;
  if (end > der.length || first > 0x7f || (padded && second <= 0x7f)) return null;
  const magnitude = padded ? digits.slice(1) : digits;
  if (magnitude.length > P256_BYTES) return null;
  return { number: concatenate(new Uint8Array(P256_BYTES - magnitude.length), magnitude), end };
}
