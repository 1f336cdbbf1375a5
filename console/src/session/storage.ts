/** Session data that survive a reload: the token, never the API key. Closing the tab deletes them. */
export interface StoredSession {
  token: string;
  expiresAt: string;
  /** End by this machine's clock, which may differ from the service's. */
  until: string;
}

/** Prefix of all stored names. */
export const NAME = "workspace-console";

export function storeSession(recallSession: StoredSession): void {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(recallSession));
  } catch {
    // A browser that stores nothing asks again after a reload.
  }
}

/** Deletes the session, but not what the tab remembers. */
export function forgetToken(): void {
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // Nothing was stored.
  }
}

/** Deletes the session and all remembered data of the tab. */
export function clearStorage(): void {
  try {
    for (const name of Object.keys(sessionStorage).filter((each) => each.startsWith(NAME))) {
      sessionStorage.removeItem(name);
    }
  } catch {
    // Nothing was stored.
  }
}

/** Returns the stored session, undefined if there is none or it has expired. */
export function kept(now: Date): StoredSession | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME) ?? "null") as StoredSession | null;
    return found && new Date(found.until) > now ? found : undefined;
  } catch {
    return undefined;
  }
}
