interface Waiting {
  start: () => void;
}

/**
 * Limits how many requests run together; the others wait in order.
 *
 * The Free tier allows a principal five requests at once. The page leaves some of them to the principal's other pages
 * and programs, and to requests of a page that was left while the service still works on them.
 */
export class Places {
  readonly #limit: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs the work as soon as a place is free; rejects with an AbortError if the signal aborts before that. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      this.#free();
    }
  }

  #take(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) {
      return Promise.reject(createAbortError());
    }
    if (this.#taken < this.#limit) {
      this.#taken += 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(createAbortError());
      };
      const waiting = {
        start: () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
      };
      this.#waiting.push(waiting);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  #free(): void {
    const next = this.#waiting.shift();
    if (next) {
      next.start();
    } else {
      this.#taken -= 1;
    }
  }
}

function createAbortError(): DOMException {
  return new DOMException("aborted", "AbortError");
}
