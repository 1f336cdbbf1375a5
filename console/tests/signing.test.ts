// Electronic signatures: the sign-in of the person who signs, what survives a redirect, and how a signature is shown.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Identity } from "../src/api/keys.ts";
import { readSignature } from "../src/api/signatures.ts";
import { session } from "../src/session/index.ts";
import { storeSession } from "../src/session/storage.ts";
import {
  findRecentSignIn,
  findSessionClient,
  forgetRecentSignIn,
  openSignIn,
  signInWithKey,
} from "../src/signing/credential.ts";
import {
  describeSubject,
  findSignature,
  forgetSignature,
  type PendingSignature,
  rememberSignature,
} from "../src/signing/pendingSignature.ts";
import { formatSignedTime } from "../src/signing/signedTime.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const RIGHT = "Workspace.Amendment.Approve";
const ANN: Identity = {
  ...{ principal: "ann@t", name: "Ann", workspace: "w", accessRights: [], via: "jwt", expiresAt: null },
};
const PENDING: PendingSignature = {
  ...{ subject: describeSubject("amendment", "line-1", "7"), principal: "ann@t", verb: "reject" },
  ...{ meaning: "rejection", statement: "I checked it.", text: "No evidence.", idempotencyKey: "k" },
};
let claims: object = {};
let principal: string | null = "ann@t";
let sent: string[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  sessionStorage.clear();
  forgetRecentSignIn();
  [claims, principal, sent] = [{ auth_time: NOW / 1000 }, "ann@t", []];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    sent.push(`${path} ${new Headers(init.headers).get("authorization")}`);
    const body = path.includes("whoami") ? { principal, name: "Bob" } : { Token: toToken(claims) };
    return new Response(JSON.stringify(body));
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function toToken(content: object): string {
  return `x.${btoa(JSON.stringify(content))}.x`;
}

test("a key gives a short token with one right, which signs until it is too old", async () => {
  const opened = await signInWithKey("oik_abcdefgh_x", RIGHT, ANN);
  expect(sent).toContain(`/workspace/api/keys/jwt?minutes=5&scopes=${RIGHT} Bearer oik_abcdefgh_x`);
  expect(opened.at).toBe("2026-03-01T12:00:00.000Z");
  expect(findRecentSignIn(ANN, RIGHT, 300)).toBe(opened);
  expect(findRecentSignIn({ ...ANN, principal: "bob@t" }, RIGHT, 300)).toBeUndefined();
  expect(findRecentSignIn(ANN, "Workspace.WarmQuery.Approve", 300)).toBeUndefined();
  vi.advanceTimersByTime(61_000);
  expect(findRecentSignIn(ANN, RIGHT, 0)).toBeUndefined();
  expect(findRecentSignIn(ANN, RIGHT, 300)).toBe(opened);
  expect(findRecentSignIn(ANN, RIGHT, 3600)).toBe(opened);
  vi.advanceTimersByTime(240_000);
  expect(findRecentSignIn(ANN, RIGHT, 300)).toBeUndefined();
  // Its token is valid for five minutes.
  expect(findRecentSignIn(ANN, RIGHT, 3600)).toBeUndefined();
});

test("a key of another person, a text that is no key, and a sign-in without a time sign nothing", async () => {
  await expect(signInWithKey("eyJhbGciOi", RIGHT, ANN)).rejects.toMatchObject({ code: "NO_CREDENTIAL" });
  expect(sent).toEqual([]);
  principal = "bob@t";
  await expect(signInWithKey("oik_abcdefgh_x", RIGHT, ANN)).rejects.toMatchObject({ code: "OTHER_PERSON" });
  principal = null;
  await expect(openSignIn("entra-token", RIGHT)).rejects.toMatchObject({ code: "OTHER_PERSON" });
  principal = "ann@t";
  claims = { auth_time: "1" };
  await expect(openSignIn("entra-token", RIGHT)).rejects.toMatchObject({ code: "NO_SIGN_IN_TIME" });
  expect(findRecentSignIn(ANN, RIGHT, 300)).toBeUndefined();
});

test("the session's own sign-in signs while it is recent, unless each signature needs one of its own", () => {
  expect(findSessionClient(300)).toBeUndefined();
  const until = new Date(NOW + 3_600_000).toISOString();
  storeSession({ token: toToken({ auth_time: NOW / 1000 - 299 }), expiresAt: until, until });
  expect(findSessionClient(300)).toBeDefined();
  expect(findSessionClient(0)).toBeUndefined();
  vi.advanceTimersByTime(2_000);
  expect(findSessionClient(300)).toBeUndefined();
});

test("a renewal of the session by its stored key signs nothing", async () => {
  vi.stubGlobal("fetch", async (path: string) => {
    const content = path.includes("signIn=false") ? { amr: [] } : { auth_time: Date.now() / 1000, amr: ["key"] };
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    return new Response(JSON.stringify({ ...ANN, expiresAt, Token: toToken(content), ExpiresAt: expiresAt }));
  });
  await session.signInWithKey("oik_abcdefgh_x");
  expect(findSessionClient(300)).toBeDefined();
  const renewed = session.state;
  await vi.advanceTimersByTimeAsync(56 * 60_000);
  expect(session.state).not.toBe(renewed);
  expect(session.state.state).toBe("in");
  expect(findSessionClient(3600)).toBeUndefined();
  session.signOut();
});

test("typed text waits a quarter of an hour for the same person and record", () => {
  rememberSignature(PENDING);
  expect(findSignature(PENDING.subject, "ann@t")).toMatchObject(PENDING);
  expect(findSignature(PENDING.subject, "bob@t")).toBeUndefined();
  expect(findSignature(PENDING.subject, null)).toBeUndefined();
  expect(findSignature(describeSubject("amendment", "line-1", "8"), "ann@t")).toBeUndefined();
  vi.advanceTimersByTime(15 * 60_000);
  expect(findSignature(PENDING.subject, "ann@t")).toBeUndefined();
  rememberSignature(PENDING);
  forgetSignature();
  expect(findSignature(PENDING.subject, "ann@t")).toBeUndefined();
});

test("a signature of a record has the same members as that of a query", () => {
  const recorded = { UserID: "ann@t", PrintedName: "Ann", Meaning: "review", Statement: null, RecordHash: "ab" };
  expect(readSignature(recorded)).toMatchObject({ userId: "ann@t", printedName: "Ann", meaning: "review" });
  expect(readSignature(undefined)).toBeUndefined();
  expect(readSignature("text")).toBeUndefined();
});

test("the time of a signature is shown with its zone", () => {
  expect(formatSignedTime("2026-05-04T08:00:00.123456Z")).toBe("2026-05-04 08:00:00 UTC");
  expect(formatSignedTime("yesterday")).toBe("yesterday");
});
