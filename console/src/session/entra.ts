// Sign-in with Entra ID: the authorization code flow of OAuth 2.1 with PKCE (RFC 7636), by redirect, without a secret.
import { ApiError } from "@/api/problem.ts";
import { type Bytes, encodeUtf8, sha256, toBase64 } from "@/proof/bytes.ts";
import { readClaim } from "./claims.ts";

/** Sign-in configuration, which the service publishes at /console/config.json. */
export interface EntraConfig {
  authorizeUrl: string;
  tokenUrl: string;
  clientId: string;
  scope: string;
}

/** State of a sign-in between the redirects. */
export interface PendingSignIn extends EntraConfig {
  state: string;
  nonce: string;
  verifier: string;
  /** The reader's destination: the part after the #. */
  hash: string;
  /** The access right of a decision that waits for its signature; undefined for an ordinary sign-in. */
  signs?: string | undefined;
}

/** A sign-in in which the person must enter the credential, although a sign-in exists. */
export interface NewSignIn {
  /** The access right of a decision that waits for its signature. */
  signs?: string;
  /** The destination; the default is the current address. */
  hash?: string;
}

/** Entra ID's reply: the parameters after the #, and the stored state. */
export interface EntraReply {
  given: URLSearchParams;
  pending: PendingSignIn | undefined;
}

/** A token of Entra ID, exchanged at this service for further tokens; in memory only. */
export interface EntraToken {
  token: string;
  endsAt: number;
}

const NAME = "workspace-console-entra";

/**
 * Returns the sign-in configuration, undefined without one.
 * @throws Error if the service does not return it
 */
export async function fetchEntraConfig(signal: AbortSignal): Promise<EntraConfig | undefined> {
  const reply = await fetch("/console/config.json", { credentials: "omit", redirect: "error", signal });
  if (!reply.ok) {
    throw new Error(`The sign-in configuration could not be loaded (status ${reply.status}).`);
  }
  const config = (await reply.json()) as { entra?: EntraConfig | null };
  return config.entra ?? undefined;
}

/** Redirects to Entra ID, where the person chooses an account, or enters its credential again for a new sign-in. */
export async function goToEntra(config: EntraConfig, again?: NewSignIn): Promise<void> {
  const pending = createPending(config, again);
  sessionStorage.setItem(NAME, JSON.stringify(pending));
  window.location.assign(await buildAuthorizeAddress(pending, again !== undefined));
}

/** Creates the state of a new sign-in. */
export function createPending(config: EntraConfig, again?: NewSignIn): PendingSignIn {
  const { authorizeUrl, tokenUrl, clientId, scope } = config;
  return {
    ...{ authorizeUrl, tokenUrl, clientId, scope },
    ...{
      state: createRandomText(),
      nonce: createRandomText(),
      verifier: createRandomText(),
      hash: again?.hash ?? window.location.hash,
      signs: again?.signs,
    },
  };
}

/** Returns the address of the sign-in at Entra ID; `isNew` requires the credential even if a sign-in exists. */
export async function buildAuthorizeAddress(pending: PendingSignIn, isNew: boolean): Promise<string> {
  const query = new URLSearchParams({
    client_id: pending.clientId,
    response_type: "code",
    // The fragment keeps the code out of server logs.
    response_mode: "fragment",
    redirect_uri: buildRedirectUri(),
    scope: pending.scope,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: toBase64Url(await sha256(encodeUtf8(pending.verifier))),
    code_challenge_method: "S256",
    prompt: isNew ? "login" : "select_account",
  });
  return `${pending.authorizeUrl}?${query}`;
}

/**
 * Removes Entra ID's reply from the address and the history and returns it; undefined without one.
 *
 * The reply has a state only if it belongs to it. A new tab starts with a copy of the storage of the tab that opened it,
 * and so possibly with the state of an earlier sign-in that the person left.
 */
export function takeEntraReply(): EntraReply | undefined {
  const given = new URLSearchParams(window.location.hash.slice(1));
  if (window.location.hash.startsWith("#/") || !given.has("state") || !(given.has("code") || given.has("error"))) {
    return undefined;
  }
  const pending = takePending(given.get("state"));
  const hash = pending?.hash.startsWith("#/") ? pending.hash : "#/";
  window.history.replaceState(null, "", `${window.location.pathname}${hash}`);
  return { given, pending };
}

/**
 * Exchanges the code for a token of Entra ID.
 * @throws ApiError if the reply does not match the request, or is an error
 */
export async function redeemCode({ given, pending }: EntraReply): Promise<EntraToken> {
  if (pending === undefined || given.get("state") !== pending.state) {
    throw createError("This reply does not belong to a sign-in of this tab. Sign in again.");
  }
  const error = given.get("error");
  if (error !== null) {
    throw createError(`Entra ID rejected the sign-in: ${given.get("error_description") ?? error}`);
  }
  const answer = await exchangeCode(pending, given.get("code") ?? "");
  // TLS to the provider replaces the signature check (OpenID Connect Core 3.1.3.7).
  if (readClaim(answer.id_token, "nonce") !== pending.nonce || typeof answer.access_token !== "string") {
    throw createError("Entra ID's reply belongs to another sign-in. Sign in again.");
  }
  return { token: answer.access_token, endsAt: Date.now() + Number(answer.expires_in ?? 0) * 1000 };
}

interface TokenReply {
  access_token?: unknown;
  id_token?: unknown;
  expires_in?: unknown;
  error?: unknown;
  error_description?: unknown;
}

async function exchangeCode(pending: PendingSignIn, code: string): Promise<TokenReply> {
  const body = new URLSearchParams({
    client_id: pending.clientId,
    grant_type: "authorization_code",
    code,
    redirect_uri: buildRedirectUri(),
    code_verifier: pending.verifier,
    scope: pending.scope,
  });
  let answer: TokenReply;
  try {
    const reply = await fetch(pending.tokenUrl, { method: "POST", body, credentials: "omit", redirect: "error" });
    answer = (await reply.json()) as TokenReply;
  } catch {
    throw createError("Entra ID does not respond. Check that this machine can reach it, then sign in again.");
  }
  if (answer.error !== undefined) {
    throw createError(`Entra ID rejected the sign-in: ${String(answer.error_description ?? answer.error)}`);
  }
  return answer;
}

/** Removes the stored state of a sign-in, and returns it if it has this value of `state`. */
function takePending(state: string | null): PendingSignIn | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME) ?? "null") as PendingSignIn | null;
    sessionStorage.removeItem(NAME);
    return found?.state === state ? (found ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

function buildRedirectUri(): string {
  return `${window.location.origin}/console/`;
}

/** Returns 256 random bits as text. */
function createRandomText(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
}

function toBase64Url(octets: Bytes): string {
  return toBase64(octets).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function createError(detail: string): ApiError {
  return new ApiError({ status: 401, code: "ENTRA_SIGN_IN_FAILED", detail });
}
