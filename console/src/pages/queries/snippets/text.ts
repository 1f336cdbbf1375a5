import type { QueryCall } from "../run/queryCall.ts";

/** A call with the host before its path, and the columns that it gives where they are known. */
export interface Subject {
  ask: QueryCall;
  /** Scheme and host: `https://plant.example`. */
  origin: string;
  columns: readonly { name: string; type: string }[];
}

/** Stands where a token goes; the real one is in no text that people copy. */
export const TOKEN = "TOKEN";

/** A text as one word of a POSIX shell, whatever it holds. */
export function quoteForShell(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A text as a literal that Python, TypeScript and JSON read alike; what cannot be seen is escaped. */
export function toLiteral(text: string): string {
  // Python does not join two escapes of a surrogate pair, so what lies beyond 16 bits stays as it is.
  return JSON.stringify(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (each) =>
    each.length > 1 ? each : `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A text as a literal of Power Query M: quotes are doubled, control characters and `#(` are escaped. */
export function toMLiteral(text: string): string {
  const escaped = text.replace(/#\(|"|\p{Cc}/gu, (each) => {
    if (each === "#(") {
      return "#(#)(";
    }
    return each === '"' ? '""' : `#(${each.charCodeAt(0).toString(16).padStart(4, "0")})`;
  });
  return `"${escaped}"`;
}

/** A name as a field of an M record. */
export function toMField(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `#${toMLiteral(name)}`;
}
