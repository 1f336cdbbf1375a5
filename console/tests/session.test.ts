import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { takeEntraReply } from "../src/session/entra.ts";
import { takeCode } from "../src/session/link.ts";
import { Session } from "../src/session/session.ts";

const WHO = { principal: "a@t", name: "A", workspace: "plant-t", accessRights: [], via: "jwt", expiresAt: null };
const KEY = "oik_ABCDEFGH_secret";
let calls: { path: string; bearer: string | null }[] = [];
let minted = 0;
let refuse = false;

beforeEach(() => {
  vi.useFakeTimers();
  sessionStorage.clear();
  calls = [];
  minted = 0;
  refuse = false;
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    calls.push({ path, bearer: new Headers(init.headers).get("authorization") });
    return Promise.resolve(refuse ? new Response('{"code":"UNAUTHENTICATED"}', { status: 401 }) : answer(path));
  });
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function answer(path: string): Response {
  if (path.includes("whoami")) {
    return new Response(JSON.stringify(WHO));
  }
  minted += 1;
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const given = { Token: `token-${minted}`, ExpiresAt: expiresAt, token: "by-code", expiresAt, AccessRights: [] };
  return new Response(JSON.stringify(given));
}

test("a key is exchanged for a token of an hour, and only the token is stored", async () => {
  const session = new Session();
  await session.signInWithCredential(KEY);
  expect(session.state).toMatchObject({ state: "in", who: WHO });
  expect(calls).toEqual([
    { path: "/workspace/api/keys/jwt?minutes=60", bearer: `Bearer ${KEY}` },
    { path: "/workspace/api/keys/whoami", bearer: "Bearer token-1" },
  ]);
  const stored = JSON.stringify(sessionStorage);
  expect(stored).toContain("token-1");
  expect(stored).not.toContain("oik_");
});

test("the token is renewed from the key before it ends", async () => {
  const session = new Session();
  await session.signInWithKey(KEY);
  await vi.advanceTimersByTimeAsync(54 * 60_000);
  expect(minted).toBe(1);
  await vi.advanceTimersByTimeAsync(2 * 60_000);
  expect(minted).toBe(2);
  expect(session.state.state).toBe("in");
});

test("a renewal proves no sign-in, because nobody enters the key", async () => {
  const session = new Session();
  await session.signInWithKey(KEY);
  calls = [];
  await vi.advanceTimersByTimeAsync(56 * 60_000);
  expect(calls[0]).toEqual({ path: "/workspace/api/keys/jwt?minutes=60&signIn=false", bearer: `Bearer ${KEY}` });
});

test("a key that was revoked ends the session at the next renewal", async () => {
  const session = new Session();
  await session.signInWithKey(KEY);
  refuse = true;
  await vi.advanceTimersByTimeAsync(56 * 60_000);
  expect(session.state).toMatchObject({ state: "out", reason: { code: "UNAUTHENTICATED" } });
  expect(sessionStorage.length).toBe(0);
});

test("a pasted token is not exchanged, and the session ends with it", async () => {
  const expiresAt = new Date(Date.now() + 60_000).toISOString();
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify({ ...WHO, expiresAt }))));
  const session = new Session();
  await session.signInWithCredential("aaa.bbb.ccc");
  expect(session.state.state).toBe("in");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(session.state).toMatchObject({ state: "out", reason: { code: "SESSION_ENDED" } });
});

test("a reload takes the token up, not the key; one that has ended is dropped", async () => {
  await new Session().signInWithKey(KEY);
  const reloaded = new Session();
  await reloaded.restore();
  expect(reloaded.state.state).toBe("in");
  vi.setSystemTime(Date.now() + 2 * 3_600_000);
  const late = new Session();
  await late.restore();
  expect(late.state).toEqual({ state: "out", reason: undefined });
});

test("signing out forgets everything and tells whoever listens", async () => {
  const session = new Session();
  await session.signInWithKey(KEY);
  const heard = vi.fn();
  session.subscribe(heard);
  session.signOut();
  expect(heard).toHaveBeenCalledOnce();
  expect(sessionStorage.length).toBe(0);
  await session.api.get("/x");
  expect(calls.at(-1)?.bearer).toBeNull();
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(minted).toBe(2);
});

test("a code is exchanged once and leaves the address and the history", async () => {
  window.history.replaceState(null, "", "/console/#sign-in=abcdefghijklmnopqrstuvwxyz");
  const before = window.history.length;
  const code = takeCode();
  expect(code).toBe("abcdefghijklmnopqrstuvwxyz");
  expect([window.location.hash, window.history.length, takeCode()]).toEqual(["#/", before, undefined]);
  const session = new Session();
  await session.signInWithCode(code ?? "");
  expect(calls[0]).toEqual({ path: "/local/sign-in", bearer: null });
  expect(session.state.state).toBe("in");
});

test("with the key at hand further tokens are made with it, so that they may outlive the session", async () => {
  const session = new Session();
  await session.signInWithCredential(KEY);
  calls = [];
  await session.issueToken(43_200, ["Workspace.Catalog.Read"]);
  expect(calls).toEqual([
    {
      path: "/workspace/api/keys/jwt?minutes=43200&scopes=Workspace.Catalog.Read&signIn=false",
      bearer: `Bearer ${KEY}`,
    },
  ]);
  expect(await session.longestExpiry()).toBe(WHO.expiresAt);
});

test("with a token alone further tokens are made with it, and end with it", async () => {
  const session = new Session();
  await session.signInWithCode("code");
  const state = session.state;
  calls = [];
  await session.issueToken(5);
  expect(calls).toEqual([{ path: "/workspace/api/keys/jwt?minutes=5", bearer: "Bearer by-code" }]);
  expect(await session.longestExpiry()).toBe(state.state === "in" && state.expiresAt.toISOString());
});

test("addresses of pages, sign-in links and half an answer are no answer of Entra ID", () => {
  for (const hash of ["", "#/keys?code=1&state=2", "#sign-in=abc", "#code=1", "#state=2"]) {
    window.location.hash = hash;
    expect(takeEntraReply()).toBeUndefined();
    expect(window.location.hash).toBe(hash);
  }
});

test("an answer of Entra ID leaves the address, and is refused where nobody asked for it", async () => {
  window.location.hash = "#code=1&state=2&session_state=3";
  const reply = takeEntraReply();
  expect(window.location.hash).toBe("#/");
  const session = new Session();
  await session.signInWithEntra(reply ?? { given: new URLSearchParams(), pending: undefined });
  expect(session.state).toMatchObject({ state: "out", reason: { code: "ENTRA_SIGN_IN_FAILED" } });
  expect(calls).toEqual([]);
});

test("a reply of Entra ID belongs to another tab if this tab stores the state of an earlier sign-in", () => {
  const store = (state: string) =>
    sessionStorage.setItem("workspace-console-entra", JSON.stringify({ state, hash: "#/keys" }));
  for (const [stored, expected] of [
    ["earlier", undefined],
    ["2", { state: "2", hash: "#/keys" }],
  ] as const) {
    store(stored);
    window.location.hash = "#code=1&state=2";
    expect(takeEntraReply()?.pending).toEqual(expected);
    expect(sessionStorage.length).toBe(0);
  }
});

test("a reload that is cut short, or meets no service, keeps the session for the next one", async () => {
  await new Session().signInWithCode("code");
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("gone")));
  const cut = new Session();
  await cut.restore();
  expect(cut.state).toMatchObject({ state: "out", reason: { code: "UNREACHABLE" } });
  expect(JSON.stringify(sessionStorage)).toContain("by-code");
});
