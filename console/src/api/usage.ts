/** Where the caller stands against its limit, as the latest reply told. */
export interface Usage {
  /** Requests in any window. */
  limit: number;
  windowSeconds: number;
  /** Requests that are left now. */
  remaining: number;
  /** Until the window gives back something. */
  resetSeconds: number;
  /** When the reply came. */
  at: Date;
}

let latest: Usage | undefined;
const listeners = new Set<() => void>();

/** Where the caller stands; undefined before the first reply that tells. */
export function getUsage(): Usage | undefined {
  return latest;
}

/** Calls a listener after each change; gives what ends that. */
export function subscribeToUsage(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Takes what a reply tells by RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10). */
export function recordUsage(headers: Headers): void {
  const policy = parseParameters(headers.get("RateLimit-Policy"));
  const standing = parseParameters(headers.get("RateLimit"));
  const [limit, windowSeconds, remaining, resetSeconds] = [policy.q, policy.w, standing.r, standing.t];
  if (limit !== undefined && windowSeconds !== undefined && remaining !== undefined && resetSeconds !== undefined) {
    setUsage({ limit, windowSeconds, remaining, resetSeconds, at: new Date() });
  }
}

/** Forgets where somebody stood who is signed in no more. */
export function clearUsage(): void {
  setUsage(undefined);
}

function setUsage(now: Usage | undefined): void {
  latest = now;
  for (const listener of listeners) {
    listener();
  }
}

/** The numeric parameters of the one item of a header: `"default";q=600;w=60`. */
function parseParameters(header: string | null): Partial<Record<string, number>> {
  const found = (header ?? "").matchAll(/;\s*([a-z]+)=(\d{1,15})/g);
  return Object.fromEntries([...found].map((part) => [part[1], Number(part[2])]));
}
