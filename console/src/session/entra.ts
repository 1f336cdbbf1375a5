// Signing in at Entra ID: the authorization code flow of OAuth 2.1 with PKCE (RFC 7636), by redirect, without a secret.
import { ApiError } from "@/api/problem.ts";
import { type Bytes, encodeUtf8, sha256, toBase64 } from "@/proof/bytes.ts";
import { readClaim } from "./claims.ts";

/** Where and as what to sign in; the service publishes it at /console/config.json. */
export interface EntraConfig {
  authorizeUrl: string;
  tokenUrl: string;
  clientId: string;
  scope: string;
}

/** What the way there must remember for the way back. */
interface Pending extends EntraConfig {
  state: string;
  nonce: string;
  verifier: string;
  /** Where the reader was to go: the part behind the #. */
  hash: string;
}

/** What Entra ID sent back: the parameters behind the #, and what was remembered for them. */
export interface EntraReply {
  given: URLSearchParams;
  pending: Pending | undefined;
}

/** A token of Entra ID, for the one exchange at this service and further tokens; in memory only. */
export interface EntraToken {
  token: string;
  endsAt: number;
}

const NAME = "workspace-console-entra";

/** Gives where to sign in, undefined where the service does not say. */
export async function fetchEntraConfig(signal: AbortSignal): Promise<EntraConfig | undefined> {
  const reply = await fetch("/console/config.json", { credentials: "omit", redirect: "error", signal });
  const config = (await reply.json()) as { entra?: EntraConfig | null };
  return reply.ok ? (config.entra ?? undefined) : undefined;
}

/** Leaves for Entra ID. */
export async function goToEntra(config: EntraConfig): Promise<void> {
  const { authorizeUrl, tokenUrl, clientId, scope } = config;
  const pending: Pending = {
    ...{ authorizeUrl, tokenUrl, clientId, scope },
    ...{
      state: createRandomText(),
      nonce: createRandomText(),
      verifier: createRandomText(),
      hash: window.location.hash,
    },
  };
  sessionStorage.setItem(NAME, JSON.stringify(pending));
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: "code",
    // Behind the #, so that the code reaches no server's log.
    response_mode: "fragment",
    redirect_uri: buildRedirectUri(),
    scope,
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: toBase64Url(await sha256(encodeUtf8(pending.verifier))),
    code_challenge_method: "S256",
    prompt: "select_account",
  });
  window.location.assign(`${authorizeUrl}?${query}`);
}

/** Takes what Entra ID sent back out of the address and the history; undefined where it sent nothing. */
export function takeEntraReply(): EntraReply | undefined {
  const given = new URLSearchParams(window.location.hash.slice(1));
  if (window.location.hash.startsWith("#/") || !given.has("state") || !(given.has("code") || given.has("error"))) {
    return undefined;
  }
  const pending = takePending();
  const hash = pending?.hash.startsWith("#/") ? pending.hash : "#/";
  window.history.replaceState(null, "", `${window.location.pathname}${hash}`);
  return { given, pending };
}

/**
 * Exchanges the code for a token of Entra ID.
 * @throws ApiError where the answer is not to what was asked, or says no
 */
export async function redeemCode({ given, pending }: EntraReply): Promise<EntraToken> {
  if (pending === undefined || given.get("state") !== pending.state) {
    throw createError("This is no answer to a sign-in that this tab began. Sign in again.");
  }
  const error = given.get("error");
  if (error !== null) {
    throw createError(`Entra ID refused: ${given.get("error_description") ?? error}`);
  }
  const answer = await exchangeCode(pending, given.get("code") ?? "");
  // The token comes straight from the provider over TLS, which stands for its signature (OpenID Connect Core 3.1.3.7).
  if (readClaim(answer.id_token, "nonce") !== pending.nonce || typeof answer.access_token !== "string") {
    throw createError("Entra ID's answer belongs to another sign-in. Sign in again.");
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

async function exchangeCode(pending: Pending, code: string): Promise<TokenReply> {
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
    throw createError("Entra ID does not answer. Check that this machine reaches it, then sign in again.");
  }
  if (answer.error !== undefined) {
    throw createError(`Entra ID refused: ${String(answer.error_description ?? answer.error)}`);
  }
  return answer;
}

function takePending(): Pending | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME) ?? "null") as Pending | null;
    sessionStorage.removeItem(NAME);
    return found ?? undefined;
  } catch {
    return undefined;
  }
}

function buildRedirectUri(): string {
  return `${window.location.origin}/console/`;
}

/** 256 random bits as text. */
function createRandomText(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
}

function toBase64Url(octets: Bytes): string {
  return toBase64(octets).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function createError(detail: string): ApiError {
  return new ApiError({ status: 401, code: "ENTRA_SIGN_IN_FAILED", detail });
}
