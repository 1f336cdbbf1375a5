// The return from Entra ID to a decision that waits for its signature.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Identity } from "../src/api/keys.ts";
import type { EntraReply } from "../src/session/entra.ts";
import { session } from "../src/session/index.ts";
import { findRecentSignIn } from "../src/signing/credential.ts";
import { continueSignature } from "../src/signing/entraReturn.ts";

const RIGHT = "Workspace.Amendment.Approve";
const ANN: Identity = {
  ...{ principal: "ann@t", name: "Ann", workspace: "w", accessRights: [], via: "jwt", expiresAt: null },
};
const REPLY: EntraReply = {
  given: new URLSearchParams({ code: "c", state: "s" }),
  pending: {
    ...{ authorizeUrl: "https://entra/authorize", tokenUrl: "https://entra/token", clientId: "c", scope: "openid" },
    ...{ state: "s", nonce: "n", verifier: "v", hash: "#/amendments", signs: RIGHT },
  },
};

beforeEach(() => {
  session.signOut();
  vi.stubGlobal("fetch", async (path: string) => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const token = toToken({ auth_time: Math.floor(Date.now() / 1000) });
    const entra = { access_token: "entra-token", id_token: toToken({ nonce: "n" }), expires_in: 3600 };
    const issued = { ...ANN, Token: token, ExpiresAt: expiresAt, expiresAt };
    return new Response(JSON.stringify(path.startsWith("https://entra/") ? entra : issued));
  });
});

afterEach(() => {
  session.signOut();
  vi.unstubAllGlobals();
});

function toToken(content: object): string {
  return `x.${btoa(JSON.stringify(content))}.x`;
}

test("the sign-in for a signature is still known after the session ended meanwhile, until the sign-out", async () => {
  expect(await continueSignature(REPLY)).toBeUndefined();
  expect(session.state).toMatchObject({ state: "in", who: { principal: "ann@t" } });
  expect(findRecentSignIn(ANN, RIGHT, 0)).toBeDefined();
  session.signOut();
  expect(findRecentSignIn(ANN, RIGHT, 0)).toBeUndefined();
});

test("the sign-in for a signature continues the session that the tab stores", async () => {
  await session.signInWithToken("mine");
  const before = session.state;
  expect(await continueSignature(REPLY)).toBeUndefined();
  expect(session.state).toMatchObject({ state: "in", number: before.state === "in" ? before.number : -1 });
  expect(findRecentSignIn(ANN, RIGHT, 0)).toBeDefined();
});
