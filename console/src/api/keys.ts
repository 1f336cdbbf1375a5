import type { Right } from "@/session/rights.ts";
import { type Client, formatPath } from "./client.ts";

/** Who a credential belongs to, and what it may do. */
export interface Identity {
  principal: string | null;
  name: string;
  workspace: string | null;
  accessRights: Right[];
  via: "apiKey" | "jwt" | "entra";
  expiresAt: string | null;
}

/** A token just issued. */
export interface IssuedToken {
  Token: string;
  ExpiresAt: string;
  AccessRights: Right[];
}

/** An API key as it is listed, without its secret. */
export interface ApiKey {
  keyId: string;
  name: string;
  principal: string;
  accessRights: Right[];
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  revokedAt: string | null;
}

export function fetchIdentity(api: Client, signal?: AbortSignal): Promise<Identity> {
  return api.get<Identity>("/workspace/api/keys/whoami", signal ? { signal } : {});
}

/** Who a credential belongs to, and when that was: by the service's clock, or this machine's where it does not say. */
export interface IdentityAt {
  who: Identity;
  now: Date;
}

export async function fetchIdentityAt(api: Client): Promise<IdentityAt> {
  const { data, headers } = await api.request<Identity>("GET", "/workspace/api/keys/whoami");
  const told = Date.parse(headers.get("date") ?? "");
  return { who: data, now: new Date(Number.isNaN(told) ? Date.now() : told) };
}

/** An API key just made, with its secret. */
export interface CreatedKey extends Omit<ApiKey, "lastUsedAt" | "revokedAt"> {
  apiKey: string;
}

/** What an API key is to be like; what is left out is as the service has it: the caller's, all rights, without end. */
export interface KeyRequest {
  name: string;
  principal?: string;
  rights?: readonly Right[];
  expiresInDays?: number;
}

const KEYS = "/workspace/api/keys";

/** Makes a token; without scopes it carries all rights of the credential that asks. */
export function issueToken(api: Client, minutes: number, scopes?: readonly Right[]): Promise<IssuedToken> {
  return api.get<IssuedToken>(`${KEYS}/jwt`, { query: { minutes, scopes: scopes?.join(",") } });
}

export async function fetchKeys(api: Client, signal?: AbortSignal): Promise<ApiKey[]> {
  return (await api.get<{ keys: ApiKey[] }>(KEYS, signal ? { signal } : {})).keys;
}

/** Makes an API key; with the same idempotency key again the key is made anew under the id that it has. */
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
