// What ends, renews or replaces a session while something else is under way.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Session } from "../src/session/session.ts";
import { recall, remember } from "../src/session/tabMemory.ts";

const KEY = "oik_ABCDEFGH_secret";
const HOUR = 3_600_000;
/** How far this machine's clock is ahead of the service's. */
let ahead = 0;
let lifetime = HOUR;
let minted = 0;
let holding: string | undefined;
let held: (() => void)[] = [];
let refusing: string | undefined;
let principal = "a@t";

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse("2026-03-01T12:00:00Z") });
  sessionStorage.clear();
  principal = "a@t";
  [ahead, lifetime, minted, holding, held, refusing] = [0, HOUR, 0, undefined, [], undefined];
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const bearer = new Headers(init.headers).get("authorization");
    const answer = answerTo(path);
    if (holding !== undefined && path.includes(holding)) {
      await new Promise<void>((resolve) => held.push(resolve));
    }
    return refusing && (path.includes(refusing) || bearer?.includes(refusing)) ? refusal() : answer;
  });
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function refusal(): Response {
  return new Response('{"code":"REFUSED","detail":"It is used up."}', { status: 401 });
}

function answerTo(path: string): Response {
  const now = Date.now() - ahead;
  const expiresAt = new Date(now + lifetime).toISOString();
  const headers = { date: new Date(now).toUTCString() };
  if (path.includes("whoami")) {
    const who = { principal, name: "A", workspace: "w", accessRights: [], via: "jwt", expiresAt };
    return new Response(JSON.stringify(who), { headers });
  }
  if (path.endsWith("/x")) {
    return new Response("1");
  }
  minted += 1;
  const token = `token-${minted}`;
  return new Response(JSON.stringify({ Token: token, token, ExpiresAt: expiresAt, expiresAt }), { headers });
}

async function release(): Promise<void> {
  holding = undefined;
  for (const go of held.splice(0)) {
    go();
  }
  await vi.advanceTimersByTimeAsync(0);
}

test.each(["/keys/jwt", "whoami"])("signing out is not undone by a renewal that waits for %s", async (path) => {
  const session = new Session();
  await session.signInWithKey(KEY);
  holding = path;
  await vi.advanceTimersByTimeAsync(56 * 60_000);
  expect(held).toHaveLength(1);
  session.signOut();
  await release();
  expect(session.state).toEqual({ state: "out", reason: undefined });
  expect(sessionStorage.length).toBe(0);
});

test("signing out is not undone by a renewal that fails", async () => {
  const session = new Session();
  await session.signInWithKey(KEY);
  [holding, refusing] = ["/keys/jwt", "/keys/jwt"];
  await vi.advanceTimersByTimeAsync(56 * 60_000);
  session.signOut();
  await release();
  expect(session.state).toEqual({ state: "out", reason: undefined });
});

test("signing out is not undone by a sign-in or a reload under way", async () => {
  const session = new Session();
  holding = "whoami";
  const signingIn = session.signInWithKey(KEY);
  await vi.advanceTimersByTimeAsync(0);
  session.signOut();
  await release();
  await signingIn;
  expect(session.state.state).toBe("out");
  await session.signInWithKey(KEY);
  const reloaded = new Session();
  holding = "whoami";
  const restoring = reloaded.restore();
  await vi.advanceTimersByTimeAsync(0);
  reloaded.signOut();
  await release();
  await restoring;
  expect(reloaded.state.state).toBe("out");
  expect(sessionStorage.length).toBe(0);
});

test("a late refusal of an earlier session's request does not end the one that runs", async () => {
  const session = new Session();
  await session.signInWithToken("first");
  [holding, refusing] = ["/x", "first"];
  const late = session.api.get("/x").catch(() => undefined);
  await vi.advanceTimersByTimeAsync(0);
  session.signOut();
  await session.signInWithToken("second");
  await release();
  await late;
  expect(session.state.state).toBe("in");
  refusing = "second";
  await session.api.get("/x").catch(() => undefined);
  expect(session.state).toMatchObject({ state: "out", reason: { code: "REFUSED" } });
});

test("a link that is used up ends no session, and says why", async () => {
  const session = new Session();
  await session.signInWithToken("mine");
  remember("kql", "typed");
  refusing = "/local/sign-in";
  expect(await session.signInWithCode("used-up")).toMatchObject({ code: "REFUSED", detail: "It is used up." });
  expect(session.state.state).toBe("in");
  expect([JSON.stringify(sessionStorage).includes("mine"), recall("kql")]).toEqual([true, "typed"]);
});

test("a page opened by a link that is used up goes on with what the tab kept", async () => {
  await new Session().signInWithToken("mine");
  refusing = "/local/sign-in";
  const opened = new Session();
  expect(await opened.signInWithCode("used-up")).toMatchObject({ code: "REFUSED" });
  expect(opened.state.state).toBe("in");
  sessionStorage.clear();
  principal = "a@t";
  const without = new Session();
  expect(await without.signInWithCode("used-up")).toBeUndefined();
  expect(without.state).toMatchObject({ state: "out", reason: { code: "REFUSED" } });
});

test("a link that is taken replaces the session, and nothing of the one before is left", async () => {
  const session = new Session();
  await session.signInWithToken("mine");
  const before = session.state;
  remember("kql", "typed");
  const heard: string[] = [];
  session.subscribe(() => heard.push(session.state.state));
  await session.signInWithCode("good");
  expect(heard).toEqual(["out", "in"]);
  expect(recall("kql")).toBeUndefined();
  expect(session.state.state === "in" && before.state === "in" && session.state.number !== before.number).toBe(true);
});

test.each([2, -2])("a clock %i hours ahead of the service's neither ends a session nor its renewal", async (hours) => {
  ahead = hours * HOUR;
  const session = new Session();
  await session.signInWithKey(KEY);
  expect(session.now().getTime()).toBe(Date.now() - ahead);
  await vi.advanceTimersByTimeAsync(54 * 60_000);
  expect([session.state.state, minted]).toEqual(["in", 1]);
  const reloaded = new Session();
  await reloaded.restore();
  expect(reloaded.state.state).toBe("in");
  await vi.advanceTimersByTimeAsync(2 * 60_000);
  expect([session.state.state, minted]).toEqual(["in", 2]);
});

test("a clock that differs by less than the precision of the reply's date counts as equal", async () => {
  ahead = 900;
  const session = new Session();
  await session.signInWithKey(KEY);
  expect(session.now().getTime()).toBe(Date.now());
});

test("a clock that is corrected after the sign-in is noticed with the next reply", async () => {
  ahead = HOUR;
  const session = new Session();
  await session.signInWithKey(KEY);
  ahead = 0;
  await session.api.get("/oi-api/whoami");
  expect(session.now().getTime()).toBe(Date.now());
});

test("a token of 30 days lasts 30 days, longer than a timer of a browser", async () => {
  lifetime = 30 * 24 * HOUR;
  const session = new Session();
  await session.signInWithToken("long");
  await vi.advanceTimersByTimeAsync(lifetime - 60_000);
  expect(session.state.state).toBe("in");
  await vi.advanceTimersByTimeAsync(61_000);
  expect(session.state).toMatchObject({ state: "out", reason: { code: "SESSION_ENDED" } });
});

test.each(["oik_ABC\u2026", "пароль", "two words", "eyJ\n"])(
  "pasted %j is no key or token, and is not sent",
  async (text) => {
    const session = new Session();
    await session.signInWithCredential(text);
    expect(session.state).toMatchObject({ state: "out", reason: { code: "NO_CREDENTIAL" } });
    expect(minted).toBe(0);
  },
);

test("the same user continues an ended session; meanwhile no request is sent", async () => {
  const session = new Session();
  await session.signInWithToken("first");
  const before = session.state;
  remember("kql", "typed");
  refusing = "/x";
  await session.api.get("/x").catch(() => undefined);
  refusing = undefined;
  expect(session.state).toMatchObject({ state: "out", held: { who: { principal: "a@t" } } });
  await expect(session.api.get("/y")).rejects.toMatchObject({ code: "SESSION_ENDED" });
  refusing = "/keys/jwt";
  await session.signInWithKey(KEY);
  expect(session.state).toMatchObject({
    state: "out",
    reason: { code: "REFUSED" },
    held: { who: { principal: "a@t" } },
  });
  refusing = undefined;
  await session.signInWithKey(KEY);
  expect(session.state).toMatchObject({ state: "in", number: before.state === "in" ? before.number : -1 });
  expect(recall("kql")).toBe("typed");
  await vi.advanceTimersByTimeAsync(56 * 60_000);
  expect(session.state).toMatchObject({ state: "in", number: before.state === "in" ? before.number : -1 });
});

test("another user finds nothing of an ended session, and neither does a page without a user", async () => {
  const session = new Session();
  await session.signInWithToken("first");
  const before = session.state;
  remember("kql", "typed");
  refusing = "/x";
  await session.api.get("/x").catch(() => undefined);
  principal = "b@t";
  await session.signInWithToken("second");
  expect(session.state.state === "in" && before.state === "in" && session.state.number !== before.number).toBe(true);
  expect(recall("kql")).toBeUndefined();
  await session.api.get("/x").catch(() => undefined);
  session.signOut();
  expect(session.state).toEqual({ state: "out", reason: undefined });
});
