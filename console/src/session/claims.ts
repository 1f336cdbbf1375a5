/** Returns an unverified claim of a JWT; undefined for other text or a missing claim. */
export function readClaim(token: unknown, name: string): string | undefined {
  const payload = typeof token === "string" ? token.split(".")[1] : undefined;
  if (payload === undefined) {
    return undefined;
  }
  try {
    const claims: unknown = JSON.parse(atob(payload.replace(/-/g, "+").replace(/_/g, "/")));
    const value = typeof claims === "object" ? (claims as Record<string, unknown> | null)?.[name] : undefined;
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
