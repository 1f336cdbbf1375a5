/** The caller's use of its rate limit, from the latest reply. */
export interface Usage {
  /** Requests allowed in each window. */
  limit: number;
  windowSeconds: number;
  /** Requests that remain now. */
  remaining: number;
  /** Seconds until the window frees requests. */
  resetSeconds: number;
  /** Time of the reply. */
  at: Date;
}

let latest: Usage | undefined;
const listeners = new Set<() => void>();

/** Returns the caller's usage; undefined before the first reply with rate-limit headers. */
export function getUsage(): Usage | undefined {
  return latest;
}

/** Calls a listener after each change; returns the function that unsubscribes it. */
export function subscribeToUsage(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Records the usage in a reply's RateLimit and RateLimit-Policy headers (draft-ietf-httpapi-ratelimit-headers-10). */
export function recordUsage(headers: Headers): void {
  const policy = parseParameters(headers.get("RateLimit-Policy"));
  const standing = parseParameters(headers.get("RateLimit"));
  const [limit, windowSeconds, remaining, resetSeconds] = [policy.q, policy.w, standing.r, standing.t];
  if (limit !== undefined && windowSeconds !== undefined && remaining !== undefined && resetSeconds !== undefined) {
    setUsage({ limit, windowSeconds, remaining, resetSeconds, at: new Date() });
  }
}

/** Clears the usage of a session that has ended. */
export function clearUsage(): void {
  setUsage(undefined);
}

function setUsage(now: Usage | undefined): void {
  latest = now;
  for (const listener of listeners) {
    listener();
  }
}

/** Parses the numeric parameters of a header with one item: `"default";q=600;w=60`. */
function parseParameters(header: string | null): Partial<Record<string, number>> {
  const found = (header ?? "").matchAll(/;\s*([a-z]+)=(\d{1,15})/g);
  return Object.fromEntries([...found].map((part) => [part[1], Number(part[2])]));
}
