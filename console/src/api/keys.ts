import type { Right } from "@/session/rights.ts";
import type { Client } from "./client.ts";

/** Who a credential belongs to, and what it may do. */
export interface Who {
  principal: string | null;
  name: string;
  workspace: string | null;
  accessRights: Right[];
  via: "apiKey" | "jwt" | "entra";
  expiresAt: string | null;
}

/** A token just issued. */
export interface Minted {
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

export function whoami(api: Client, signal?: AbortSignal): Promise<Who> {
  return api.get<Who>("/workspace/api/keys/whoami", signal ? { signal } : {});
}
