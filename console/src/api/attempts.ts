import { ApiError, isOutcomeUnknown } from "./problem.ts";

/** Statuses of refusals after an own earlier attempt: the item is missing, exists already, or has changed. */
const REFUSALS: readonly number[] = [404, 409, 412];

/** The attempts of one change. If an attempt was executed but its reply was lost, the service refuses the next one. */
export class Attempts {
  #isUncertain = false;

  /** Whether an earlier attempt was possibly executed. */
  get isUncertain(): boolean {
    return this.#isUncertain;
  }

  /**
   * Sends the change, and returns its result.
   * @param send sends it on condition of the version that the user saw
   * @param findResult returns the result of an earlier attempt; undefined if that is not there
   * @throws ApiError if the change fails; `isPossiblyOwn` if an earlier attempt possibly caused the refusal
   */
  async run<T>(send: () => Promise<T>, findResult: (refusal: ApiError) => Promise<T | undefined>): Promise<T> {
    try {
      const result = await send();
      this.#isUncertain = false;
      return result;
    } catch (error) {
      if (this.#isUncertain && error instanceof ApiError && REFUSALS.includes(error.status)) {
        // If the look-up fails, too, the outcome remains unknown.
        const result = await findResult(error).catch(() => undefined);
        if (result !== undefined) {
          this.#isUncertain = false;
          return result;
        }
        error.isPossiblyOwn = true;
      }
      this.#isUncertain ||= isOutcomeUnknown(error);
      throw error;
    }
  }
}
