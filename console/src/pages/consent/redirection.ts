const REFUSED = new Set(["javascript:", "data:", "vbscript:", "blob:", "about:", "file:"]);

/** Tells whether the browser may go to the address of a reply; the service has checked the address already. */
export function isSafeRedirection(address: string): boolean {
  try {
    return !REFUSED.has(new URL(address).protocol);
  } catch {
    return false;
  }
}
