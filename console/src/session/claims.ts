/** Returns an unverified text claim of a JWT; undefined for other text or a missing claim. */
export function readClaim(token: unknown, name: string): string | undefined {
  const value = readAnyClaim(token, name);
  return typeof value === "string" ? value : undefined;
}

/** Returns an unverified numeric claim of a JWT; undefined for other text or a missing claim. */
export function readNumberClaim(token: unknown, name: string): number | undefined {
  const value = readAnyClaim(token, name);
  return typeof value === "number" ? value : undefined;
}

function readAnyClaim(token: unknown, name: string): unknown {
  const payload = typeof token === "string" ? token.split(".")[1] : undefined;
  if (payload === undefined) {
    return undefined;
  }
  try {
    const claims: unknown = JSON.parse(atob(payload.replace(/-/g, "+").replace(/_/g, "/")));
    return typeof claims === "object" ? (claims as Record<string, unknown> | null)?.[name] : undefined;
  } catch {
    return undefined;
  }
}
