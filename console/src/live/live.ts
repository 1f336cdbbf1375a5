import type { Client } from "@/api/client.ts";
import type { Range } from "@/components/plot/decimate.ts";
import { Frames } from "./frames.ts";
import { History } from "./history.ts";
import { type Drop, type Link, LiveStream, type StreamState } from "./stream.ts";

/** Filter of a stream; both properties must match if both are set. */
export interface Scope {
  connection: string;
  surface: string;
}

const TICK_MS = 1000;
/** Messages that are read at the latest now, because a hidden page has no animation frames. */
const BATCH = 2000;
/** Bounds of the milliseconds between two drawings. */
const SHORTEST_FRAME_MS = 100;
const LONGEST_FRAME_MS = 500;
/** The first past message arrives within this time after the stream opened, if there is one. */
const REPLAY_MS = 3000;

/** A live stream with its history and its drawers. */
export class Live {
  readonly history: History;
  state: StreamState = { kind: "connecting" };
  /** The latest interruption of the stream. */
  drop: Drop | undefined;
  /** Time of the pause, milliseconds since 1970; undefined while drawing continues. */
  pausedAt: number | undefined;
  /** The visible part of the window, in seconds since 1970; undefined for the whole window. */
  zoom: Range | undefined;
  #openedAt = 0;
  /** Received messages that are not in the history yet; reading many at once costs less than one by one. */
  #pending: string[] = [];
  readonly #stream: LiveStream;
  readonly #frames: Frames;
  readonly #drawers = new Set<(now: number) => void>();
  readonly #listeners = new Set<() => void>();
  #ticking: ReturnType<typeof setInterval> | undefined;

  /**
   * @param seconds of the past to begin with, and to show
   * @param now returns the time by the service's clock, milliseconds since 1970
   */
  constructor(
    api: Client,
    scope: Scope,
    seconds: number,
    readonly now: () => number,
  ) {
    this.history = new History(seconds);
    // A drawing for each bin is enough: between two bins the chart moves by less than a pixel.
    const pause = Math.min(LONGEST_FRAME_MS, Math.max(SHORTEST_FRAME_MS, this.history.width));
    this.#frames = new Frames(() => this.#draw(), pause);
    this.#stream = new LiveStream(
      {
        negotiate: (query, signal) =>
          api.get<Link>("/oi-api/live-stream/negotiate", { query: { ...scope, ...query }, signal }),
        open: (url) => new WebSocket(url),
        message: (text) => this.#queue(text),
        changed: (state) => this.#tell(() => this.#setState(state)),
        dropped: (drop) => this.#tell(() => (this.drop = drop)),
        now,
        replayStart: () => {
          this.#readMessages();
          return this.history.findReplayStart();
        },
      },
      seconds,
    );
  }

  start(): void {
    this.#stream.start();
    this.#ticking = setInterval(() => {
      this.#frames.request();
      this.#tell(() => this.#readMessages());
    }, TICK_MS);
  }

  stop(): void {
    clearInterval(this.#ticking);
    this.#stream.stop();
    this.#frames.stop();
  }

  /** Tries again at once. */
  retry(): void {
    this.#stream.start();
  }

  /** Pauses or resumes drawing; messages are always recorded. Resuming shows the whole window. */
  pause(paused: boolean): void {
    this.#tell(() => {
      this.pausedAt = paused ? this.now() : undefined;
      this.zoom = undefined;
    });
    this.#frames.request();
  }

  /** Shows a part of the window, and pauses so that it does not move away; undefined shows the whole window. */
  zoomTo(range: Range | undefined): void {
    this.#tell(() => {
      this.pausedAt ??= range === undefined ? undefined : this.now();
      this.zoom = range;
    });
  }

  /** Tells whether the stream has just opened, so that past messages may still arrive. */
  isReplaying(): boolean {
    return this.state.kind === "open" && this.history.consumed === 0 && Date.now() - this.#openedAt < REPLAY_MS;
  }

  dismissDrop(): void {
    this.#tell(() => (this.drop = undefined));
  }

  /** Calls back with the time to draw, in animation frames; returns the function that unsubscribes. */
  onDraw(drawer: (now: number) => void): () => void {
    this.#drawers.add(drawer);
    this.#frames.request();
    if (this.pausedAt !== undefined) {
      drawer(this.pausedAt);
    }
    return () => this.#drawers.delete(drawer);
  }

  /** Calls back every second, and whenever the stream's state changes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #setState(state: StreamState): void {
    this.state = state;
    this.#openedAt = state.kind === "open" ? Date.now() : this.#openedAt;
  }

  #queue(text: string): void {
    this.#pending.push(text);
    if (this.#pending.length >= BATCH) {
      this.#readMessages();
    }
    this.#frames.request();
  }

  #readMessages(): void {
    const texts = this.#pending;
    this.#pending = [];
    const now = this.now();
    for (const text of texts) {
      this.history.add(text, now);
    }
  }

  #draw(): void {
    this.#readMessages();
    if (this.pausedAt === undefined) {
      const now = this.now();
      for (const drawer of this.#drawers) {
        drawer(now);
      }
    }
  }

  #tell(change: () => unknown): void {
    change();
    for (const listener of this.#listeners) {
      listener();
    }
  }
}
