import type { Right } from "@/session/rights.ts";
import { type Client, formatPath } from "./client.ts";

/** Parameters of an authorization request, as the client sent them. */
export type AuthorizationParameters = Record<string, string | string[]>;

/** What the consent page shows. */
export interface ConsentQuestion {
  client: { id: string; name: string; isDeclared: boolean };
  /** Host or app to which the browser goes after the decision. */
  redirectHost: string;
  /** Requested rights that the person can delegate. */
  accessRights: Right[];
  /** Requested rights that the person lacks. */
  missingRights: Right[];
}

/** Address of the reply to the client. */
export interface Redirection {
  redirectTo: string;
}

/** A consent of a member to a client. */
export interface Grant {
  id: string;
  clientId: string;
  clientName: string;
  principal: string;
  accessRights: Right[];
  createdAt: string;
  lastUsedAt: string;
  expiresAt: string;
}

const AUTHORIZE = "/oauth2/authorize";

/** Reads the parameters of an authorization request from the address of the consent page. */
export function readParameters(query: URLSearchParams): AuthorizationParameters {
  const parameters: AuthorizationParameters = {};
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name);
    parameters[name] = name === "resource" ? values : (values[0] ?? "");
  }
  return parameters;
}

/** Returns the question for the person, or the address of a reply with an error. */
export function fetchQuestion(
  api: Client,
  parameters: AuthorizationParameters,
  signal: AbortSignal,
): Promise<ConsentQuestion | Redirection> {
  return api.post<ConsentQuestion | Redirection>(`${AUTHORIZE}/preview`, parameters, { signal });
}

/** Sends the decision; `scopes` are the delegated rights, undefined if the person declines. */
export function decide(
  api: Client,
  parameters: AuthorizationParameters,
  scopes: readonly Right[] | undefined,
): Promise<Redirection> {
  return api.post<Redirection>(AUTHORIZE, { ...parameters, approve: scopes !== undefined, scopes: scopes ?? [] });
}

export async function fetchGrants(api: Client, signal: AbortSignal): Promise<Grant[]> {
  return (await api.get<{ grants: Grant[] }>("/oauth2/grants", { signal })).grants;
}

export function endGrant(api: Client, grantId: string): Promise<void> {
  return api.delete(formatPath`/oauth2/grants/${grantId}`);
}
