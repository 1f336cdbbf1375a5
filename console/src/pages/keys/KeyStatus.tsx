import type { ApiKey } from "@/api/keys.ts";
import { Status, type Tone } from "@/components/Badge.tsx";
import { session } from "@/session/index.ts";

/** A key of the list. */
export interface ListedKey extends ApiKey {
  /** Whether its owner is a disabled member, so that the service rejects it; missing if the token cannot read the team. */
  ownerDisabled?: boolean;
}

export type KeyState = "in use" | "unused" | "owner disabled" | "expired" | "revoked";

type Classified = Pick<ListedKey, "revokedAt" | "expiresAt" | "lastUsedAt" | "ownerDisabled">;

/** Returns the state of a key: revoked, expired, rejected because its owner is disabled, used or unused. */
export function classifyKey(key: Classified, now: Date): KeyState {
  if (key.revokedAt !== null) {
    return "revoked";
  }
  if (key.expiresAt !== null && new Date(key.expiresAt) <= now) {
    return "expired";
  }
  if (key.ownerDisabled) {
    return "owner disabled";
  }
  return key.lastUsedAt === null ? "unused" : "in use";
}

/** Tells whether a key can still be revoked: also while its owner is disabled. */
export function canRevoke(state: KeyState): boolean {
  return state !== "expired" && state !== "revoked";
}

const TONES: Record<KeyState, Tone> = {
  "in use": "good",
  unused: "neutral",
  "owner disabled": "warn",
  expired: "warn",
  revoked: "bad",
};

/** The state of a key. */
export function KeyStatus({ of }: { of: ListedKey }) {
  const standing = classifyKey(of, session.now());
  return <Status tone={TONES[standing]}>{standing}</Status>;
}
