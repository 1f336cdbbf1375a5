import { ApiError, isAbort, isPermanent } from "@/api/problem.ts";

/** A link to the stream. */
export interface Link {
  url: string;
  expiresAt: string;
}

/** Reason of an interruption. */
export interface Drop {
  /** WebSocket close code; 1006 after a network failure. */
  code: number;
  /** Reason that the service states; empty if it states none. */
  reason: string;
  /** Milliseconds since 1970. */
  at: number;
}

export type StreamState =
  | { kind: "connecting" }
  | { kind: "open" }
  | { kind: "waiting"; until: number; error: unknown }
  | { kind: "ended"; error: unknown };

/** Functions that a stream calls. */
export interface StreamHandlers {
  /** Requests a link; `query` selects the messages to replay first. */
  negotiate: (query: Record<string, string | number>, signal: AbortSignal) => Promise<Link>;
  open: (url: string) => WebSocket;
  message: (text: string) => void;
  changed: (state: StreamState) => void;
  dropped: (drop: Drop) => void;
  /** The time by the service's clock, milliseconds since 1970. */
  now: () => number;
  /** Time of measurement from which messages can be missing, milliseconds since 1970; 0 without messages. */
  replayStart: () => number;
}

/** The token of the link has expired. */
export const TOKEN_EXPIRED = 4401;
/** The reader was too slow. */
export const FELL_BEHIND = 1013;

/** Replay overlap: messages can arrive late, and repeated ones are harmless. */
const OVERLAP_MS = 10_000;
const SHORTEST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;

/** Live stream that reconnects and replays missed messages. */
export class LiveStream {
  readonly #ends: StreamHandlers;
  readonly #seconds: number;
  #abort = new AbortController();
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;

  /** @param seconds of the past to begin with */
  constructor(ends: StreamHandlers, seconds: number) {
    this.#ends = ends;
    this.#seconds = seconds;
  }

  /** Opens the stream; reopens it if it is open or opening. */
  start(): void {
    this.stop();
    this.#abort = new AbortController();
    void this.#connect(this.#abort.signal);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket) {
      closeSocket(socket);
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    this.#ends.changed({ kind: "connecting" });
    try {
      const link = await this.#ends.negotiate(this.#beginning(), signal);
      if (!signal.aborted) {
        this.#listen(this.#ends.open(link.url));
      }
    } catch (error) {
      if (signal.aborted || isAbort(error)) {
        return;
      }
      if (isPermanent(error)) {
        this.#ends.changed({ kind: "ended", error });
      } else {
        this.#later(error);
      }
    }
  }

  #listen(socket: WebSocket): void {
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#ends.changed({ kind: "open" });
    };
    socket.onmessage = (event) => {
      this.#failures = 0;
      this.#ends.message(String(event.data));
    };
    socket.onclose = ({ code, reason }) => {
      if (this.#socket === socket) {
        this.#socket = undefined;
        this.#closed(code, reason, opened);
      }
    };
  }

  #closed(code: number, reason: string, opened: boolean): void {
    if (opened) {
      this.#ends.dropped({ code, reason, at: Date.now() });
    }
    if (code === TOKEN_EXPIRED && this.#failures === 0) {
      this.#failures = 1;
      void this.#connect(this.#abort.signal);
    } else {
      this.#later(undefined);
    }
  }

  #later(error: unknown): void {
    const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    const wait = Math.max(asked, Math.min(SHORTEST_WAIT_MS * 2 ** this.#failures, LONGEST_WAIT_MS));
    this.#failures += 1;
    this.#ends.changed({ kind: "waiting", until: Date.now() + wait, error });
    this.#timer = setTimeout(() => void this.#connect(this.#abort.signal), wait);
  }

  /** Returns the query of the replay: the whole window at first, later from shortly before the missing messages. */
  #beginning(): Record<string, string | number> {
    const start = this.#ends.replayStart();
    const oldest = this.#ends.now() - this.#seconds * 1000;
    if (start - OVERLAP_MS <= oldest) {
      return { windowSec: this.#seconds };
    }
    return { since: new Date(Math.min(start, this.#ends.now()) - OVERLAP_MS).toISOString() };
  }
}

/** Closes a socket, but only after it has opened, because browsers report an earlier close as a failure. */
function closeSocket(socket: WebSocket): void {
  socket.onmessage = null;
  if (socket.readyState === WebSocket.CONNECTING) {
    socket.onopen = () => socket.close(1000);
  } else {
    socket.close(1000);
  }
}
