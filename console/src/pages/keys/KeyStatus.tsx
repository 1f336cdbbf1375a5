import type { ApiKey } from "@/api/keys.ts";
import { Status, type Tone } from "@/components/Badge.tsx";

export type KeyState = "in use" | "unused" | "ended" | "revoked";

/** Returns whether a key is active, used or revoked. */
export function classifyKey(key: Pick<ApiKey, "revokedAt" | "expiresAt" | "lastUsedAt">, now: Date): KeyState {
  if (key.revokedAt !== null) {
    return "revoked";
  }
  if (key.expiresAt !== null && new Date(key.expiresAt) <= now) {
    return "ended";
  }
  return key.lastUsedAt === null ? "unused" : "in use";
}

const TONES: Record<KeyState, Tone> = { "in use": "good", unused: "neutral", ended: "warn", revoked: "bad" };

export function KeyStatus({ of }: { of: ApiKey }) {
  const standing = classifyKey(of, new Date());
  return <Status tone={TONES[standing]}>{standing}</Status>;
}
