// The sign-in of a person who signs: a token of its own, in memory only, beside the session.
import { Client } from "@/api/client.ts";
import { fetchIdentity, type Identity, issueToken } from "@/api/keys.ts";
import { ApiError } from "@/api/problem.ts";
import { readNumberClaim } from "@/session/claims.ts";
import { session } from "@/session/index.ts";
import type { Right } from "@/session/rights.ts";
import { kept } from "@/session/storage.ts";

/** A recent sign-in, with which decisions can be signed. */
export interface RecentSignIn {
  /** Sends requests with the token of this sign-in. */
  readonly client: Client;
  readonly principal: string;
  readonly right: Right;
  /** Time of the sign-in by the service's clock, RFC 3339. */
  readonly at: string;
  /** When this page got it, by this machine's clock, in milliseconds since 1970. */
  readonly receivedAt: number;
}

const KEY = /^oik_[\x21-\x7e]+$/;
const TOKEN_MINUTES = 5;
/** With `maxAgeSeconds` 0 a sign-in signs once, within this time. */
const SINGLE_USE_SECONDS = 60;

let recent: RecentSignIn | undefined;
let wasSignedIn = false;
session.subscribe(() => {
  const { state } = session.state;
  // Not while a session begins: that a tab has no session, too, is announced as "out", after the person signed in here.
  if (wasSignedIn && state === "out") {
    recent = undefined;
  }
  wasSignedIn = state === "in";
});

/**
 * Signs in with an API key, for signatures only; the session does not change.
 * @throws ApiError if the key is not valid, or belongs to another person
 */
export async function signInWithKey(key: string, right: Right, who: Identity): Promise<RecentSignIn> {
  if (!KEY.test(key)) {
    throw createError("NO_CREDENTIAL", "This is not an API key; it begins with oik_. Copy it again.");
  }
  return await openSignIn(key, right, who.principal);
}

/**
 * Signs in with a credential of a sign-in that has just happened.
 * @param principal the person who is signed in; undefined for anyone
 */
export async function openSignIn(credential: string, right: Right, principal?: string | null): Promise<RecentSignIn> {
  const found = await fetchIdentity(createClient(credential));
  if (found.principal === null || (principal !== undefined && found.principal !== principal)) {
    const detail = `${found.name || found.principal} signed in, but ${principal} must sign this decision. Nothing was signed.`;
    throw createError("OTHER_PERSON", detail);
  }
  const issued = await issueToken(createClient(credential), TOKEN_MINUTES, [right]);
  const seconds = readNumberClaim(issued.Token, "auth_time");
  if (seconds === undefined) {
    throw createError("NO_SIGN_IN_TIME", NO_TIME);
  }
  const at = new Date(seconds * 1000).toISOString();
  const client = createClient(issued.Token);
  recent = { client, principal: found.principal, right, at, receivedAt: Date.now() };
  return recent;
}

const NO_TIME =
  "The identity provider did not report when you signed in. Sign with an API key, or ask an administrator to add the " +
  "optional claim auth_time to the app registration.";

/** Returns the latest sign-in for signatures if it is recent enough for another one, and its token has not expired. */
export function findRecentSignIn(who: Identity, right: Right, maxAgeSeconds: number): RecentSignIn | undefined {
  const usable = recent && recent.principal === who.principal && recent.right === right;
  const seconds = Math.min(maxAgeSeconds || SINGLE_USE_SECONDS, TOKEN_MINUTES * 60);
  return usable && isRecent(recent?.receivedAt, seconds) ? recent : undefined;
}

/** Forgets the latest sign-in for signatures: it was refused, or it may sign once only. */
export function forgetRecentSignIn(): void {
  recent = undefined;
}

/** Returns a client with the session's sign-in if that is probably recent enough; the service decides. */
export function findSessionClient(maxAgeSeconds: number): Client | undefined {
  const token = kept(new Date())?.token;
  const seconds = readNumberClaim(token, "auth_time");
  // With 0 the session's sign-in may have signed before.
  const age = seconds === undefined ? Number.POSITIVE_INFINITY : session.now().getTime() / 1000 - seconds;
  const usable = maxAgeSeconds > 0 && age < maxAgeSeconds;
  // A client of its own, because a refusal to sign must not end the session.
  return usable && token !== undefined ? createClient(token) : undefined;
}

function isRecent(at: number | undefined, seconds: number): boolean {
  return at !== undefined && Date.now() - at < seconds * 1000;
}

/** Creates a client with a given credential; a rejection ends no session. */
export function createClient(credential: string): Client {
  return new Client({ token: () => credential, workspace: () => "", refused: () => undefined });
}

function createError(code: string, detail: string): ApiError {
  return new ApiError({ status: 0, code, detail });
}
