import { findConsent } from "./pendingConsent.ts";

const CODE = /^#sign-in=([A-Za-z0-9_-]{20,128})$/;

/** Removes a sign-in code from the address and history and returns it; undefined without one. */
export function takeCode(): string | undefined {
  const code = CODE.exec(window.location.hash)?.[1];
  if (code !== undefined) {
    window.history.replaceState(null, "", `${window.location.pathname}${findConsent() ?? "#/"}`);
  }
  return code;
}
