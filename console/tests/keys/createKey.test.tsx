import { expect, test, vi } from "vitest";
import { ApiError, createUnreachableError } from "../../src/api/problem.ts";
import { ApiKeys } from "../../src/pages/keys/ApiKeys.tsx";
import { CreateKey } from "../../src/pages/keys/CreateKey.tsx";
import { session } from "../../src/session/index.ts";
import { signIn } from "../amendments/pages.ts";
import { mountRoot, press, root, show, submit, typeText } from "../mounted.ts";

mountRoot();

test("the form of a new key opens on a page that was loaded by http, which has no crypto.randomUUID", async () => {
  vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
  await show(<CreateKey members={[]} onCancel={() => undefined} onMade={() => undefined} />);
  expect(root.textContent).toContain("Create the key");
});

test.each([
  { status: 409, code: "IDEMPOTENCY_KEY_IN_USE", isSame: true },
  { status: 400, code: "VALIDATION_FAILED", isSame: false },
])("a repetition after $code has the same idempotency key: $isSame", async ({ status, code, isSame }) => {
  signIn();
  const post = vi.spyOn(session.api, "post").mockRejectedValue(new ApiError({ status, code, detail: "" }));
  await show(<CreateKey members={[]} onCancel={() => undefined} onMade={() => undefined} />);
  await typeText("dashboard");
  for (const attempts of [1, 2]) {
    await submit();
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  }
  const [first, second] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second === first).toBe(isSame);
});

test("a key whose reply was lost is listed after Cancel", async () => {
  signIn(["Workspace.Catalog.Read"]);
  const keys: object[] = [];
  vi.spyOn(session.api, "get").mockImplementation(async () => ({ keys: [...keys] }) as never);
  vi.spyOn(session.api, "post").mockImplementation(async (_, body) => {
    keys.push({ ...(body as object), keyId: "ABCDEFGH", principal: "me", accessRights: [], expiresAt: null });
    throw createUnreachableError();
  });
  await show(<ApiKeys />);
  await press("Create an API key");
  await typeText("dashboard");
  await submit();
  await vi.waitFor(() => expect(root.textContent).toContain("does not respond"));
  await press("Cancel");
  await vi.waitFor(() => expect(root.querySelector("table")?.textContent).toContain("dashboard"));
});
