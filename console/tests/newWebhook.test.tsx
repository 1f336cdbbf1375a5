import { expect, test, vi } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import { NewWebhook } from "../src/pages/webhooks/NewWebhook.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, root, show, submit, typeText } from "./mounted.ts";

mountRoot();

test.each([
  { status: 409, code: "IDEMPOTENCY_KEY_IN_USE", isSame: true },
  { status: 400, code: "VALIDATION_FAILED", isSame: false },
])("a repetition after $code has the same idempotency key: $isSame", async ({ status, code, isSame }) => {
  signIn();
  const lists = { eventTypes: [{ type: "alert.fired", description: "" }], surfaces: [], dataConnections: [] };
  vi.spyOn(session.api, "get").mockResolvedValue(lists as never);
  const post = vi.spyOn(session.api, "post").mockRejectedValue(new ApiError({ status, code, detail: "" }));
  await show(<NewWebhook />);
  await typeText("https://plant.example/hook");
  for (const attempts of [1, 2]) {
    await submit();
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  }
  const [first, second] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second === first).toBe(isSame);
});
