import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SignInForm } from "../src/session/SignIn.tsx";
import { findButton, mountRoot, show } from "./mounted.ts";

const CONFIG = { authorizeUrl: "https://e/authorize", tokenUrl: "https://e/token", clientId: "c", scope: "s" };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

mountRoot();

test.each([
  ["does not respond", () => Promise.reject(new TypeError("offline"))],
  ["replies 503", () => Promise.resolve(Response.json({ code: "UNAVAILABLE" }, { status: 503 }))],
])("the form offers Entra ID as soon as the service is back, if it %s at first", async (_, fail) => {
  const fetch = vi.fn(async () => Response.json({ entra: CONFIG }));
  vi.stubGlobal("fetch", fetch.mockImplementationOnce(fail).mockImplementationOnce(fail));
  await show(
    <SignInForm busy={false} reason={undefined} again>
      Help
    </SignInForm>,
  );
  expect(findButton("Entra ID")).toBeUndefined();
  for (let turn = 0; turn < 5; turn += 1) {
    await act(async () => void (await vi.advanceTimersByTimeAsync(5000)));
  }
  expect(findButton("Entra ID")).toBeDefined();
  expect(fetch).toHaveBeenCalledTimes(3);
});
