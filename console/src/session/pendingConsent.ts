// The address of a consent page, remembered in the tab, because a sign-in link replaces the address.

/** Not a name of the session, which is deleted when a sign-in fails. */
const NAME = "pending-consent";
const PREFIX = "#/consent?";
const REMEMBERED_MS = 15 * 60_000;

/** Remembers the address if it is a consent page. */
export function rememberConsent(hash: string): void {
  if (hash.startsWith(PREFIX)) {
    tryStorage(() => sessionStorage.setItem(NAME, JSON.stringify({ hash, until: Date.now() + REMEMBERED_MS })));
  }
}

/** Returns the remembered address, undefined without one. */
export function findConsent(): string | undefined {
  const found = tryStorage(() => JSON.parse(sessionStorage.getItem(NAME) ?? "null")) as Remembered | null | undefined;
  return found && found.until > Date.now() && found.hash.startsWith(PREFIX) ? found.hash : undefined;
}

/** Forgets the address after the decision. */
export function forgetConsent(): void {
  tryStorage(() => sessionStorage.removeItem(NAME));
}

interface Remembered {
  hash: string;
  until: number;
}

/** Without storage, the person opens the application's link again after the sign-in. */
function tryStorage<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
