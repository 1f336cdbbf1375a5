// The numbers in the navigation after a request that failed.
import { render } from "preact";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, createUnreachableError } from "../src/api/problem.ts";
import { AlertBadge } from "../src/pages/alerts/AlertBadge.tsx";
import { ConnectionBadge } from "../src/pages/connections/ConnectionBadge.tsx";
import { InboxBadge } from "../src/pages/inbox/InboxBadge.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, root } from "./mounted.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

mountRoot();

const FAILING = { enabled: true, status: "ERROR", statusReason: "refused" };
const SESSION_ENDED = new ApiError({ status: 401, code: "SESSION_ENDED", detail: "" });

test.each([
  ["firing alerts", <AlertBadge />, { alerts: [{}] }, createUnreachableError()],
  ["firing alerts after a session", <AlertBadge />, { alerts: [{}] }, SESSION_ENDED],
  ["connections with errors", <ConnectionBadge />, { connections: [FAILING] }, createUnreachableError()],
  ["decisions", <InboxBadge />, { amendments: [{ AmendedBy: "ann@t" }], cursor: null }, createUnreachableError()],
])("the number of %s is read again within a minute after a failed request", async (_, badge, reply, error) => {
  signIn();
  const get = vi.spyOn(session.api, "get").mockRejectedValue(error);
  render(badge, root);
  await vi.advanceTimersByTimeAsync(100);
  expect(root.textContent).toBe("");
  get.mockResolvedValue(reply);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(root.textContent).toContain("1");
});

test("a number that the token may not read is requested again only after ten minutes", async () => {
  const forbidden = new ApiError({ status: 403, code: "FORBIDDEN", detail: "" });
  const get = vi.spyOn(session.api, "get").mockRejectedValue(forbidden);
  render(<AlertBadge />, root);
  await vi.advanceTimersByTimeAsync(590_000);
  expect(get).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(get).toHaveBeenCalledTimes(2);
});
