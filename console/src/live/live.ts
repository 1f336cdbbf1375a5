import type { Client } from "@/api/client.ts";
import type { Range } from "@/components/plot/decimate.ts";
import { Frames } from "./frames.ts";
import { History } from "./history.ts";
import { type Drop, type Link, LiveStream, type StreamState } from "./stream.ts";

/** Filter of a stream; both members must match if both are set. */
export interface Scope {
  connection: string;
  surface: string;
}

const TICK_MS = 1000;
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
  readonly #stream: LiveStream;
  readonly #frames = new Frames(() => this.#draw());
  readonly #drawers = new Set<(now: number) => void>();
  readonly #listeners = new Set<() => void>();
  #ticking: ReturnType<typeof setInterval> | undefined;

  /** @param seconds of the past to begin with, and to show */
  constructor(api: Client, scope: Scope, seconds: number) {
    this.history = new History(seconds);
    this.#stream = new LiveStream(
      {
        negotiate: (query, signal) =>
          api.get<Link>("/oi-api/live-stream/negotiate", { query: { ...scope, ...query }, signal }),
        open: (url) => new WebSocket(url),
        message: (text) => {
          this.history.add(text, Date.now());
          this.#frames.request();
        },
        changed: (state) => this.#tell(() => this.#setState(state)),
        dropped: (drop) => this.#tell(() => (this.drop = drop)),
        newest: () => this.history.newest,
      },
      seconds,
    );
  }

  start(): void {
    this.#stream.start();
    this.#ticking = setInterval(() => {
      this.#frames.request();
      this.#tell(() => undefined);
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
      this.pausedAt = paused ? Date.now() : undefined;
      this.zoom = undefined;
    });
    this.#frames.request();
  }

  /** Shows a part of the window, and pauses so that it does not move away; undefined shows the whole window. */
  zoomTo(range: Range | undefined): void {
    this.#tell(() => {
      this.pausedAt ??= range === undefined ? undefined : Date.now();
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

  #draw(): void {
    if (this.pausedAt === undefined) {
      const now = Date.now();
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
