import type { Right } from "@/session/rights.ts";
import { type Client, formatPath } from "./client.ts";

/** The owner of a credential, and its access rights. */
export interface Identity {
  principal: string | null;
  name: string;
  workspace: string | null;
  accessRights: Right[];
  via: "apiKey" | "jwt" | "entra";
  expiresAt: string | null;
}

/** A new token. */
export interface IssuedToken {
  Token: string;
  ExpiresAt: string;
  AccessRights: Right[];
}

/** An API key in a list, without its secret. */
export interface ApiKey {
  keyId: string;
  name: string;
  principal: string;
  accessRights: Right[];
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  revokedAt: string | null;
  /** Lookups of the connections to which the key is bound; missing for a key that is not bound. */
  connections?: string[];
  /** Patterns of device ids of a bound key; null for all devices. */
  devices?: string[] | null;
}

export function fetchIdentity(api: Client, signal?: AbortSignal): Promise<Identity> {
  return api.get<Identity>("/workspace/api/keys/whoami", signal ? { signal } : {});
}

/** An identity and the time of the reply: the service's clock, or this machine's if the reply has no date. */
export interface IdentityAt {
  who: Identity;
  now: Date;
}

export async function fetchIdentityAt(api: Client): Promise<IdentityAt> {
  const { data, headers } = await api.request<Identity>("GET", "/workspace/api/keys/whoami");
  const told = Date.parse(headers.get("date") ?? "");
  return { who: data, now: new Date(Number.isNaN(told) ? Date.now() : told) };
}

/** A new API key, with its secret. */
export interface CreatedKey extends Omit<ApiKey, "lastUsedAt" | "revokedAt"> {
  apiKey: string;
}

/** Properties of a new API key. The service's defaults: owned by the caller, all rights, no end. */
export interface KeyRequest {
  name: string;
  principal?: string;
  rights?: readonly Right[];
  expiresInDays?: number;
  /** Binds the key to connections: it can only send their telemetry. */
  connections?: readonly string[];
  /** Patterns of the device ids of a bound key; all devices by default. */
  devices?: readonly string[];
}

const KEYS = "/workspace/api/keys";

/** Issues a token; without scopes it has all rights of the caller's credential. */
export function issueToken(api: Client, minutes: number, scopes?: readonly Right[]): Promise<IssuedToken> {
  return api.get<IssuedToken>(`${KEYS}/jwt`, { query: { minutes, scopes: scopes?.join(",") } });
}

/** Like `issueToken`, for a stored API key: nobody enters it now, so the token proves no sign-in and signs nothing. */
export function issueTokenWithoutSignIn(api: Client, minutes: number, scopes?: readonly Right[]): Promise<IssuedToken> {
  return api.get<IssuedToken>(`${KEYS}/jwt`, { query: { minutes, scopes: scopes?.join(","), signIn: false } });
}

export async function fetchKeys(api: Client, signal?: AbortSignal): Promise<ApiKey[]> {
  return (await api.get<{ keys: ApiKey[] }>(KEYS, signal ? { signal } : {})).keys;
}

/** Creates an API key. A repeat with the same idempotency key returns a new secret for the same key id. */
export function createKey(api: Client, wanted: KeyRequest, idempotencyKey: string): Promise<CreatedKey> {
  return api.post<CreatedKey>(KEYS, wanted, { headers: { "Idempotency-Key": idempotencyKey } });
}

export function revokeKey(api: Client, keyId: string): Promise<void> {
  return api.delete(formatPath`/workspace/api/keys/${keyId}`);
}

/** Revokes a token by its id, the claim `jti`. */
export function revokeToken(api: Client, tokenId: string): Promise<void> {
  return api.delete(formatPath`/workspace/api/keys/jwt/${tokenId}`);
}
