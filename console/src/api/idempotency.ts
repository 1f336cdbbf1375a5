/** Makes an `Idempotency-Key`: random, also on pages that come by http, where `crypto.randomUUID` is not to be had. */
export function createIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
