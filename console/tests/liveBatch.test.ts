import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Client } from "../src/api/client.ts";
import { Live } from "../src/live/live.ts";

let queries: unknown[] = [];
const api = {
  get: async (_: string, options: { query: unknown }) => {
    queries.push(options.query);
    return { url: "ws://stream", expiresAt: "" };
  },
} as unknown as Client;
let sockets: {
  onmessage?: (event: { data: string }) => void;
  onclose?: (event: { code: number; reason: string }) => void;
  close: () => void;
  readyState: number;
}[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse("2026-05-04T12:00:00Z") });
  [sockets, queries] = [[], []];
  // A hidden page: no animation frame comes.
  vi.stubGlobal("requestAnimationFrame", () => 0);
  vi.stubGlobal("cancelAnimationFrame", () => undefined);
  vi.stubGlobal(
    "WebSocket",
    class {
      static CONNECTING = 0;
      readyState = 1;
      onmessage?: (event: { data: string }) => void;
      onclose?: (event: { code: number; reason: string }) => void;
      constructor() {
        sockets.push(this);
      }
      close(): void {}
    },
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function send(count: number, Subject = "d1", Timestamp = "2026-05-04T12:00:00Z"): void {
  const data = JSON.stringify({ Subject, Timestamp, Metadata: { ConnectionLookup: "rig" }, Payload: { flow: 4 } });
  for (let index = 0; index < count; index += 1) {
    sockets[0]?.onmessage?.({ data });
  }
}

test("messages are read together, at the latest with the next second, also on a hidden page", async () => {
  const live = new Live(api, { connection: "", surface: "" }, 300, Date.now);
  live.start();
  await vi.advanceTimersByTimeAsync(10);
  send(3);
  expect(live.history.consumed).toBe(0);
  await vi.advanceTimersByTimeAsync(1000);
  expect(live.history.consumed).toBe(3);
  live.stop();
});

test("many messages do not wait for the second", async () => {
  const live = new Live(api, { connection: "", surface: "" }, 300, Date.now);
  live.start();
  await vi.advanceTimersByTimeAsync(10);
  send(2001);
  expect(live.history.consumed).toBe(2000);
  live.stop();
});

test("a stream that opens again replays also the missed messages of a device that sends a batch each minute", async () => {
  const live = new Live(api, { connection: "", surface: "" }, 900, Date.now);
  live.start();
  await vi.advanceTimersByTimeAsync(10);
  send(1);
  send(1, "gateway", "2026-05-04T11:59:00Z");
  sockets[0]?.onclose?.({ code: 4401, reason: "" });
  await vi.advanceTimersByTimeAsync(1000);
  expect(queries[1]).toMatchObject({ since: "2026-05-04T11:58:50.000Z" });
  live.stop();
});

test("messages are drawn by the service's clock while the clock of this machine is behind", async () => {
  const behind = 60_000;
  const live = new Live(api, { connection: "", surface: "" }, 300, () => Date.now() + behind);
  const drawn: number[] = [];
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => setTimeout(draw));
  live.onDraw((now) => drawn.push(now));
  live.start();
  await vi.advanceTimersByTimeAsync(10);
  send(1, "d1", "2026-05-04T12:01:00Z");
  await vi.advanceTimersByTimeAsync(1000);
  expect(live.history.series).toHaveLength(1);
  expect(drawn.at(-1)).toBeGreaterThan(Date.parse("2026-05-04T12:01:00Z"));
  live.pause(true);
  expect(live.pausedAt).toBe(Date.now() + behind);
  sockets[0]?.onclose?.({ code: 4401, reason: "" });
  await vi.advanceTimersByTimeAsync(1000);
  expect(queries[1]).toMatchObject({ since: "2026-05-04T12:00:50.000Z" });
  live.stop();
});
