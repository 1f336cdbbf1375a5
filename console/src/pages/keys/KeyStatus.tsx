import type { ApiKey } from "@/api/keys.ts";
import { Status, type Tone } from "@/components/Badge.tsx";

export type Standing = "in use" | "unused" | "ended" | "revoked";

/** Tells whether a key still works, and whether anybody used it. */
export function standingOf(key: Pick<ApiKey, "revokedAt" | "expiresAt" | "lastUsedAt">, now: Date): Standing {
  if (key.revokedAt !== null) {
    return "revoked";
  }
  if (key.expiresAt !== null && new Date(key.expiresAt) <= now) {
    return "ended";
  }
  return key.lastUsedAt === null ? "unused" : "in use";
}

const TONES: Record<Standing, Tone> = { "in use": "good", unused: "neutral", ended: "warn", revoked: "bad" };

export function KeyStatus({ of }: { of: ApiKey }) {
  const standing = standingOf(of, new Date());
  return <Status tone={TONES[standing]}>{standing}</Status>;
}
