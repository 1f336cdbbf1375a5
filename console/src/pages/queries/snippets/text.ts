import type { Ask } from "../run/ask.ts";

/** A call with the host before its path, and the columns that it gives where they are known. */
export interface Subject {
  ask: Ask;
  /** Scheme and host: `https://plant.example`. */
  origin: string;
  columns: readonly { name: string; type: string }[];
}

/** Stands where a token goes; the real one is in no text that people copy. */
export const TOKEN = "TOKEN";

/** A text as one word of a POSIX shell, whatever it holds. */
export function shellWord(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A text as a literal that Python, TypeScript and JSON read alike. */
export function literal(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A text as a literal of Power Query M: quotes are doubled, control characters and `#(` are escaped. */
export function mLiteral(text: string): string {
  const escaped = text.replace(/#\(|"|\p{Cc}/gu, (each) => {
    if (each === "#(") {
      return "#(#)(";
    }
    return each === '"' ? '""' : `#(${each.charCodeAt(0).toString(16).padStart(4, "0")})`;
  });
  return `"${escaped}"`;
}

/** A name as a field of an M record. */
export function mField(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `#${mLiteral(name)}`;
}
