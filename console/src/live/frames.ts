/** Limits drawing to the screen's rate and a minimum interval. */
export class Frames {
  #asked = false;
  #last = Number.NEGATIVE_INFINITY;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param leastMs minimum milliseconds between two drawings */
  constructor(
    readonly draw: () => void,
    readonly leastMs = 100,
  ) {}

  /** Requests a drawing; ignores requests while one is pending. */
  request(): void {
    if (this.#asked) {
      return;
    }
    this.#asked = true;
    const wait = Math.max(0, this.#last + this.leastMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#frame = requestAnimationFrame(() => {
        this.#asked = false;
        this.#last = performance.now();
        this.draw();
      });
    }, wait);
  }

  stop(): void {
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#asked = false;
  }
}
