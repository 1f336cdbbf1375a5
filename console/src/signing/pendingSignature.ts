// What a person typed before leaving for a sign-in, remembered in the tab; without secrets.

/** A decision that waits for the person's return from the identity provider. */
export interface PendingSignature {
  /** The decided record, from `describeSubject`. */
  readonly subject: string;
  readonly principal: string;
  readonly verb: "approve" | "reject";
  readonly meaning: string;
  readonly statement: string;
  /** Reason or comment of a rejection. */
  readonly text: string;
  readonly idempotencyKey: string;
}

/** Not a name of the session, because a session that ended meanwhile must not delete it. */
const NAME = "pending-signature";
const REMEMBERED_MS = 15 * 60_000;

export function rememberSignature(pending: PendingSignature): void {
  sessionStorage.setItem(NAME, JSON.stringify({ ...pending, until: Date.now() + REMEMBERED_MS }));
}

/** Returns what this person typed for the decision about a record; undefined for another person or record. */
export function findSignature(subject: string, principal: string | null): PendingSignature | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME) ?? "null") as (PendingSignature & { until: number }) | null;
    const usable = found && found.until > Date.now() && found.subject === subject && found.principal === principal;
    return usable ? found : undefined;
  } catch {
    return undefined;
  }
}

export function forgetSignature(): void {
  try {
    sessionStorage.removeItem(NAME);
  } catch {
    // Nothing was stored.
  }
}

/** Returns the name of a record that can be decided: `describeSubject("amendment", scope, id)`. */
export function describeSubject(...names: readonly string[]): string {
  return JSON.stringify(names);
}
