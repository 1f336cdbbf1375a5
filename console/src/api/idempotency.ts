import { type BackgroundJob, hasFailed } from "@/components/jobs.ts";
import { ApiError } from "./problem.ts";

/** Creates a random `Idempotency-Key`; pages loaded by http have no `crypto.randomUUID`. */
export function createIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Codes and statuses of refusals that do not tell whether an earlier request with the same key was executed. */
const UNDECIDED_CODE = "IDEMPOTENCY_KEY_IN_USE";
const UNDECIDED_STATUSES: readonly number[] = [401, 429];

/**
 * Tells whether a further attempt needs another `Idempotency-Key`, because the service has refused this one for good.
 * After other errors the request was possibly executed, so that only the same key prevents a second execution.
 */
export function needsNewKey(error: unknown): boolean {
  return (
    error instanceof ApiError &&
    error.status >= 400 &&
    error.status < 500 &&
    error.code !== UNDECIDED_CODE &&
    !UNDECIDED_STATUSES.includes(error.status)
  );
}

/**
 * The requests of a form that starts jobs. A repetition after a lost reply has the same `Idempotency-Key`, so the
 * service executes it once; a request with other content has another key.
 */
export class JobRequests {
  /** Keys by content of the requests that were possibly executed. */
  readonly #keys = new Map<string, string>();

  /**
   * Sends a request, and returns its job.
   * @param content everything that distinguishes the request from others
   * @param send sends the request with the key
   * @throws the error of `send`
   */
  async run<T extends Pick<BackgroundJob, "status">>(content: object, send: (key: string) => Promise<T>): Promise<T> {
    const text = JSON.stringify(content);
    const isRepeated = this.#keys.has(text);
    const key = this.#keys.get(text) ?? createIdempotencyKey();
    this.#keys.set(text, key);
    try {
      const job = await send(key);
      this.#keys.delete(text);
      // The job of the lost reply failed, or the user cancelled it in the list; the user wants another one.
      return isRepeated && hasFailed(job) ? await this.run(content, send) : job;
    } catch (error) {
      if (needsNewKey(error)) {
        this.#keys.delete(text);
      }
      throw error;
    }
  }
}
