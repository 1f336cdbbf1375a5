// Bytes and their texts: base64, hexadecimal, comparison.

export type Bytes = Uint8Array<ArrayBuffer>;

/** Returns the bytes of base64 text with padding; null for anything else (`atob` is less strict). */
export function fromBase64(text: string): Bytes | null {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return null;
  }
  return btoa(binary) === text ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : null;
}

/** Returns base64 text with padding. */
export function toBase64(bytes: Bytes): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Returns the bytes of lowercase hexadecimal text; null for anything else. */
export function fromHex(text: string): Bytes | null {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) return null;
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Returns lowercase hexadecimal text. */
export function toHex(bytes: Bytes): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Concatenates byte arrays. */
export function concatenate(...parts: readonly Bytes[]): Bytes {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

/** Tells whether two sequences of bytes are the same. */
export function areEqual(one: Bytes, other: Bytes): boolean {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

/** Returns the UTF-8 bytes of text. */
export function encodeUtf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/**
 * Returns SHA-256 of some bytes.
 *
 * @throws Error if the browser has no WebCrypto, as on pages loaded by http from another machine.
 */
export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await getWebCrypto().digest("SHA-256", bytes));
}

/** Tells whether this page can compute digests and verify signatures. */
export function hasWebCrypto(): boolean {
  return (globalThis.crypto as Crypto | undefined)?.subtle !== undefined;
}

/** Returns the browser's WebCrypto; throws an error with an explanation if it is missing. */
export function getWebCrypto(): SubtleCrypto {
  if (!hasWebCrypto())
    throw new Error("Browsers offer WebCrypto only to pages loaded over https or from this machine.");
  return crypto.subtle;
}
