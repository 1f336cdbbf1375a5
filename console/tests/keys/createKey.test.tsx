import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../../src/api/problem.ts";
import { CreateKey } from "../../src/pages/keys/CreateKey.tsx";
import { session } from "../../src/session/index.ts";
import { signIn } from "../amendments/pages.ts";

afterEach(() => document.body.replaceChildren());

test("the form of a new key opens on a page that was loaded by http, which has no crypto.randomUUID", () => {
  vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
  const root = document.body.appendChild(document.createElement("div"));
  act(() => render(<CreateKey members={[]} onCancel={() => undefined} onMade={() => undefined} />, root));
  expect(root.textContent).toContain("Create the key");
  act(() => render(null, root));
});

test.each([
  { status: 409, code: "IDEMPOTENCY_KEY_IN_USE", isSame: true },
  { status: 400, code: "VALIDATION_FAILED", isSame: false },
])("a repetition after $code has the same idempotency key: $isSame", async ({ status, code, isSame }) => {
  signIn();
  const post = vi.spyOn(session.api, "post").mockRejectedValue(new ApiError({ status, code, detail: "" }));
  const root = document.body.appendChild(document.createElement("div"));
  await act(() => render(<CreateKey members={[]} onCancel={() => undefined} onMade={() => undefined} />, root));
  await act(() => {
    const name = root.querySelector("input");
    if (name) name.value = "dashboard";
    name?.dispatchEvent(new Event("input", { bubbles: true }));
  });
  for (const attempts of [1, 2]) {
    await act(() => {
      root.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    });
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  }
  const [first, second] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second === first).toBe(isSame);
  act(() => render(null, root));
});
