/** Creates a random `Idempotency-Key`; pages loaded by http have no `crypto.randomUUID`. */
export function createIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
