import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Client } from "../src/api/client.ts";
import { Live } from "../src/live/live.ts";

const api = { get: async () => ({ url: "ws://stream", expiresAt: "" }) } as unknown as Client;
let sockets: { onmessage?: (event: { data: string }) => void; close: () => void; readyState: number }[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse("2026-05-04T12:00:00Z") });
  sockets = [];
  // A hidden page: no animation frame comes.
  vi.stubGlobal("requestAnimationFrame", () => 0);
  vi.stubGlobal("cancelAnimationFrame", () => undefined);
  vi.stubGlobal(
    "WebSocket",
    class {
      static CONNECTING = 0;
      readyState = 1;
      onmessage?: (event: { data: string }) => void;
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

function send(count: number): void {
  const message = { Subject: "d1", Metadata: { ConnectionLookup: "rig" }, Payload: { flow: 4 } };
  const data = JSON.stringify({ ...message, Timestamp: "2026-05-04T12:00:00Z" });
  for (let index = 0; index < count; index += 1) {
    sockets[0]?.onmessage?.({ data });
  }
}

test("messages are read together, at the latest with the next second, also on a hidden page", async () => {
  const live = new Live(api, { connection: "", surface: "" }, 300);
  live.start();
  await vi.advanceTimersByTimeAsync(10);
  send(3);
  expect(live.history.consumed).toBe(0);
  await vi.advanceTimersByTimeAsync(1000);
  expect(live.history.consumed).toBe(3);
  live.stop();
});

test("many messages do not wait for the second", async () => {
  const live = new Live(api, { connection: "", surface: "" }, 300);
  live.start();
  await vi.advanceTimersByTimeAsync(10);
  send(2001);
  expect(live.history.consumed).toBe(2000);
  live.stop();
});
