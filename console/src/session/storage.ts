/** What a reload of the tab keeps: the token, never the API key. It goes when the tab is closed. */
export interface StoredSession {
  token: string;
  expiresAt: string;
  /** When it ends by this machine's clock, which may differ from the service's. */
  until: string;
}

/** Everything that the console stores in a tab begins with it. */
export const NAME = "workspace-console";

export function storeSession(recallSession: StoredSession): void {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(recallSession));
  } catch {
    // A browser that stores nothing asks again after a reload.
  }
}

/** Forgets the session and all that the tab remembered for its reader. */
export function clearStorage(): void {
  try {
    for (const name of Object.keys(sessionStorage).filter((each) => each.startsWith(NAME))) {
      sessionStorage.removeItem(name);
    }
  } catch {
    // Nothing was stored.
  }
}

/** Gives what is kept, undefined where there is nothing, or nothing that is still good. */
export function kept(now: Date): StoredSession | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME) ?? "null") as StoredSession | null;
    return found && new Date(found.until) > now ? found : undefined;
  } catch {
    return undefined;
  }
}
