/** What a reload of the tab keeps: the token, never the API key. It goes when the tab is closed. */
export interface Kept {
  token: string;
  expiresAt: string;
}

const NAME = "workspace-console";

export function keep(kept: Kept): void {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(kept));
  } catch {
    // A browser that stores nothing asks again after a reload.
  }
}

export function forget(): void {
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // Nothing was stored.
  }
}

/** Gives what is kept, undefined where there is nothing, or nothing that is still good. */
export function kept(now: Date): Kept | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME) ?? "null") as Kept | null;
    return found && new Date(found.expiresAt) > now ? found : undefined;
  } catch {
    return undefined;
  }
}
