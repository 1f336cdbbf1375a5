import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import { type Drop, LiveStream, type StreamState } from "../src/live/stream.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");

/** Stands in for the browser's socket. */
class Socket {
  readyState = 1;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  closed = 0;

  close(code: number): void {
    this.closed = code;
  }
}

let sockets: Socket[] = [];
let queries: Record<string, string | number>[] = [];
let states: StreamState["kind"][] = [];
let drops: Drop[] = [];
let texts: string[] = [];
let newest = 0;
let failure: unknown;
let stream: LiveStream;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  [sockets, queries, states, drops, texts, newest, failure] = [[], [], [], [], [], 0, undefined];
  stream = new LiveStream(
    {
      negotiate: (query) => {
        queries.push(query);
        return failure ? Promise.reject(failure) : Promise.resolve({ url: "ws://x", expiresAt: "" });
      },
      open: () => {
        const socket = new Socket();
        sockets.push(socket);
        return socket as unknown as WebSocket;
      },
      message: (text) => texts.push(text),
      changed: (state) => states.push(state.kind),
      dropped: (drop) => drops.push(drop),
      now: Date.now,
      replayStart: () => newest,
    },
    300,
  );
});

afterEach(() => {
  stream.stop();
  vi.useRealTimers();
});

async function opened(): Promise<Socket> {
  await vi.advanceTimersByTimeAsync(0);
  const socket = sockets.at(-1);
  socket?.onopen?.();
  return socket as Socket;
}

test("a stream begins with the window", async () => {
  stream.start();
  const socket = await opened();
  socket.onmessage?.({ data: "one" });
  expect(queries).toEqual([{ windowSec: 300 }]);
  expect(states).toEqual(["connecting", "open"]);
  expect(texts).toEqual(["one"]);
});

test.each([1013, 1006, 1001])(
  "closed with %i it comes back by itself, from a little before the newest",
  async (code) => {
    stream.start();
    const socket = await opened();
    newest = NOW - 1000;
    socket.onclose?.({ code, reason: "too slow" });
    expect(states.at(-1)).toBe("waiting");
    expect(drops).toEqual([{ code, reason: "too slow", at: NOW }]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(queries[1]).toEqual({ since: "2026-03-01T11:59:49.000Z" });
    await opened();
    expect(states.at(-1)).toBe("open");
  },
);

test("away for longer than the window, it begins anew with the window", async () => {
  stream.start();
  const socket = await opened();
  newest = NOW - 400_000;
  socket.onclose?.({ code: 1006, reason: "" });
  await vi.advanceTimersByTimeAsync(1000);
  expect(queries[1]).toEqual({ windowSec: 300 });
});

test("an expired token takes a new link at once, and only once in a row", async () => {
  stream.start();
  (await opened()).onclose?.({ code: 4401, reason: "" });
  (await opened()).onclose?.({ code: 4401, reason: "" });
  expect(queries).toHaveLength(2);
  expect(states.at(-1)).toBe("waiting");
});

test("it waits longer and longer while the service does not answer, half a minute at most", async () => {
  failure = new ApiError({ status: 0, code: "UNREACHABLE", detail: "no answer" });
  stream.start();
  await vi.advanceTimersByTimeAsync(31_000);
  expect(queries).toHaveLength(6);
  await vi.advanceTimersByTimeAsync(300_000);
  expect(queries).toHaveLength(16);
});

test("a service that asks for a pause gets it", async () => {
  failure = new ApiError({ status: 503, code: "BUSY", detail: "later", retryAfterSeconds: 20 });
  stream.start();
  await vi.advanceTimersByTimeAsync(19_000);
  expect(queries).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(queries).toHaveLength(2);
});

test("what the service refuses for good ends it, until somebody tries again", async () => {
  failure = new ApiError({ status: 404, code: "SURFACE_NOT_FOUND", detail: "no such surface" });
  stream.start();
  await vi.advanceTimersByTimeAsync(300_000);
  expect(states).toEqual(["connecting", "ended"]);
  failure = undefined;
  stream.start();
  await opened();
  expect(states.at(-1)).toBe("open");
});

test("a stream that ended with its session comes back by itself after a new sign-in", async () => {
  stream.start();
  const socket = await opened();
  failure = new ApiError({ status: 401, code: "SESSION_ENDED", detail: "sign in again" });
  socket.onclose?.({ code: 4401, reason: "" });
  await vi.advanceTimersByTimeAsync(300_000);
  expect(states.at(-1)).toBe("waiting");
  failure = undefined;
  await vi.advanceTimersByTimeAsync(30_000);
  await opened();
  expect(states.at(-1)).toBe("open");
});

test("a stopped stream listens no more and does not come back", async () => {
  stream.start();
  const socket = await opened();
  stream.stop();
  expect([socket.closed, socket.onmessage]).toEqual([1000, null]);
  socket.onclose?.({ code: 1000, reason: "" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect([queries.length, drops.length]).toEqual([1, 0]);
});

test("a socket that is opening when the stream stops is closed once it is open", async () => {
  stream.start();
  await vi.advanceTimersByTimeAsync(0);
  const [socket] = sockets as [Socket];
  socket.readyState = 0;
  stream.stop();
  expect(socket.closed).toBe(0);
  socket.onopen?.();
  expect(socket.closed).toBe(1000);
});
