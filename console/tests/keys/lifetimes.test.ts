import { expect, test } from "vitest";
import { canRevoke, classifyKey } from "../../src/pages/keys/KeyStatus.tsx";
import { canIssue, countMinutesUntil, LIFETIMES, MOST_MINUTES, parseMinutes } from "../../src/pages/keys/lifetimes.ts";
import { readClaim } from "../../src/session/claims.ts";

const NOW = new Date("2026-01-05T08:00:00Z");

test("presets go from 15 minutes to 30 days", () => {
  expect(LIFETIMES.map((each) => each.minutes)).toEqual([15, 60, 480, 1440, 10_080, 43_200]);
});

test("minutes are whole and within what the service takes", () => {
  expect([" 90 ", "1", "43200"].map(parseMinutes)).toEqual([90, 1, MOST_MINUTES]);
  expect(["", "0", "43201", "1.5", "-1", "1e3", "999999", "x"].map(parseMinutes)).toEqual(Array(8).fill(undefined));
});

test("a token fits when it ends no later than what it is made with", () => {
  expect(canIssue(60, "2026-01-05T09:00:00Z", NOW)).toBe(true);
  expect(canIssue(61, "2026-01-05T09:00:00Z", NOW)).toBe(false);
  expect(canIssue(MOST_MINUTES, null, NOW)).toBe(true);
  expect(countMinutesUntil("2026-01-05T08:59:59Z", NOW)).toBe(59);
  expect(countMinutesUntil("2026-01-05T07:00:00Z", NOW)).toBe(0);
});

test("a revoked key is not shown as expired, and an expired key is not shown as in use", () => {
  const key = { revokedAt: null, expiresAt: null, lastUsedAt: null };
  const past = "2026-01-05T08:00:00Z";
  expect(classifyKey(key, NOW)).toBe("unused");
  expect(classifyKey({ ...key, lastUsedAt: past }, NOW)).toBe("in use");
  expect(classifyKey({ ...key, lastUsedAt: past, expiresAt: past }, NOW)).toBe("expired");
  expect(classifyKey({ ...key, lastUsedAt: past, ownerDisabled: true }, NOW)).toBe("owner disabled");
  expect(canRevoke("owner disabled")).toBe(true);
  expect(canRevoke("revoked")).toBe(false);
  expect(classifyKey({ revokedAt: past, expiresAt: past, lastUsedAt: past }, NOW)).toBe("revoked");
});

test("a pasted token gives its id, anything else none", () => {
  const payload = btoa(JSON.stringify({ jti: "a1", name: "\u00ff?>" }))
    .replace(/\+/g, "-")
    .replace(/\//g, "_");
  expect(readClaim(`x.${payload.replace(/=+$/, "")}.y`, "jti")).toBe("a1");
  expect(
    ["a1", "", "a.b.c", `x.${btoa("null")}.y`, `x.${btoa('{"jti":1}')}.y`].map((text) => readClaim(text, "jti")),
  ).toEqual(Array(5).fill(undefined));
});
