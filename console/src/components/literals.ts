/** Quotes any text as one word of a POSIX shell. */
export function quoteForShell(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns a literal that is valid in Python, TypeScript and JSON, with invisible characters escaped. */
export function toLiteral(text: string): string {
  // Python does not join escaped surrogate pairs, so characters beyond 16 bits are not escaped.
  return JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (each) =>
    each.length > 1 ? each : `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
