import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CreateToken } from "../../src/pages/keys/CreateToken.tsx";
import { KeyStatus } from "../../src/pages/keys/KeyStatus.tsx";
import { session } from "../../src/session/index.ts";
import { findSessionClient } from "../../src/signing/credential.ts";
import { mountRoot, root, show } from "../mounted.ts";

const HOUR = 3_600_000;
/** By the service's clock, two hours behind this machine's. */
const NOW = Date.parse("2026-03-01T12:00:00Z");
const IN_90_MINUTES = new Date(NOW + 1.5 * HOUR).toISOString();
const TOKEN = `x.${btoa(JSON.stringify({ auth_time: NOW / 1000 }))}.x`;

beforeEach(async () => {
  vi.useFakeTimers({ now: NOW + 2 * HOUR });
  vi.stubGlobal("fetch", async () => {
    const who = { principal: "a@t", name: "A", workspace: "w", accessRights: [], via: "jwt", expiresAt: IN_90_MINUTES };
    return new Response(JSON.stringify(who), { headers: { date: new Date(NOW).toUTCString() } });
  });
  await session.signInWithToken(TOKEN);
});

afterEach(async () => {
  vi.setSystemTime(NOW);
  // The other tests find a clock that agrees with the service's.
  await session.signInWithToken(TOKEN);
  session.signOut();
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

mountRoot();

test("lifetimes of tokens are offered by the service's clock", async () => {
  await show(<CreateToken />);
  const disabled = [...root.querySelectorAll("label")].map((label) => label.querySelector("input")?.disabled);
  expect(root.textContent).toContain("at most 90 minutes");
  // 15 minutes and an hour, but not 8 hours.
  expect(disabled.slice(0, 3)).toEqual([false, false, true]);
});

test("the state of a key is shown by the service's clock", async () => {
  const key = { keyId: "k", name: "K", principal: "a@t", accessRights: [], createdAt: "", revokedAt: null };
  await show(<KeyStatus of={{ ...key, expiresAt: IN_90_MINUTES, lastUsedAt: null }} />);
  expect(root.textContent).toBe("unused");
});

test("the age of a sign-in is its age by the service's clock", () => {
  expect(findSessionClient(300)).toBeDefined();
});
