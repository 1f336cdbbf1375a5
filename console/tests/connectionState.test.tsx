import { render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import type { ConnectionItem } from "../src/api/connections.ts";
import { createUnreachableError } from "../src/api/problem.ts";
import { ConnectionState } from "../src/pages/connections/ConnectionState.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, root } from "./mounted.ts";

afterEach(() => {
  vi.useRealTimers();
});

mountRoot();

const ITEM = {
  etag: "1",
  lookup: "rig",
  status: "CONNECTED",
  statusReason: null,
  stats: { messagesReceived: 12_345, lastMessage: "2026-01-05T08:00:00Z" },
  surfaces: [],
} as unknown as ConnectionItem;

test("the state of a connection is shown with the error while the service does not respond", async () => {
  vi.useFakeTimers();
  const get = vi.spyOn(session.api, "get").mockResolvedValue(ITEM);
  render(<ConnectionState item={ITEM} />, root);
  await vi.advanceTimersByTimeAsync(100);
  expect(root.textContent).not.toContain("does not respond");
  get.mockRejectedValue(createUnreachableError());
  await vi.advanceTimersByTimeAsync(5000);
  expect(root.textContent).toContain("The service does not respond");
  expect(root.textContent).toContain("12,345");
  get.mockResolvedValue(ITEM);
  await vi.advanceTimersByTimeAsync(5000);
  expect(root.textContent).not.toContain("does not respond");
});

test("the state of a connection is shown with an error if the service accepts a request and never replies", async () => {
  vi.useFakeTimers();
  const get = vi.spyOn(session.api, "get").mockResolvedValue(ITEM);
  render(<ConnectionState item={ITEM} />, root);
  await vi.advanceTimersByTimeAsync(100);
  get.mockImplementation((_, options) => waitForAbort(options?.signal));
  await vi.advanceTimersByTimeAsync(5000);
  expect(root.textContent).not.toContain("does not respond");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(root.textContent).toContain("The service does not respond");
});

const waitForAbort = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
  });
