/** Draws no more often than the screen does, and than is pleasant, however often it is asked to. */
export class Frames {
  #asked = false;
  #last = Number.NEGATIVE_INFINITY;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param leastMs between two drawings */
  constructor(
    readonly draw: () => void,
    readonly leastMs = 100,
  ) {}

  /** Asks for a drawing; until it is there, further requests are the same one. */
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
