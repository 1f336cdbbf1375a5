const CODE = /^#sign-in=([A-Za-z0-9_-]{20,128})$/;

/** Takes a sign-in code out of the address, and out of the history; undefined where there is none. */
export function takeCode(): string | undefined {
  const code = CODE.exec(window.location.hash)?.[1];
  if (code !== undefined) {
    window.history.replaceState(null, "", `${window.location.pathname}#/`);
  }
  return code;
}
