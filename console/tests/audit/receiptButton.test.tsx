import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "@/api/problem.ts";
import { ReceiptButton } from "@/pages/audit/ReceiptButton.tsx";
import { session } from "@/session/index.ts";
import { mountRoot, root, show } from "../mounted.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

mountRoot();

/** Lets time pass; the reply to a request of this time is rendered, too. */
async function wait(milliseconds: number): Promise<void> {
  await act(() => vi.advanceTimersByTimeAsync(milliseconds).then(() => undefined));
  await act(() => vi.advanceTimersByTimeAsync(0).then(() => undefined));
}

test("the button appears while the record is open, when a checkpoint covers the record", async () => {
  const get = vi.spyOn(session.api, "get").mockResolvedValue({ size: 4 });
  await show(<ReceiptButton chain={CHAIN} sequence={5} />);
  await wait(0);
  expect(root.textContent).toBe("");
  get.mockResolvedValue({ size: 5 });
  await wait(15_000);
  expect(root.textContent).toContain("Save the receipt");
  const requests = get.mock.calls.length;
  await wait(60_000);
  expect(get).toHaveBeenCalledTimes(requests);
});

test("an error of the newest checkpoint is shown until a later one can be read", async () => {
  const error = new ApiError({ status: 503, code: "CHECKPOINTS_UNAVAILABLE", detail: "The store does not respond." });
  const get = vi.spyOn(session.api, "get").mockRejectedValue(error);
  await show(<ReceiptButton chain={CHAIN} sequence={5} />);
  await wait(0);
  expect(root.textContent).toContain("The store does not respond.");
  get.mockResolvedValue({ size: 5 });
  await wait(15_000);
  expect(root.textContent).not.toContain("The store does not respond.");
  expect(root.textContent).toContain("Save the receipt");
});
