import type { QueryCall } from "../run/queryCall.ts";

/** A call with its origin and, if known, its result columns. */
export interface Subject {
  ask: QueryCall;
  /** Scheme and host: `https://plant.example`. */
  origin: string;
  columns: readonly { name: string; type: string }[];
}

/** Placeholder for a token; texts to copy never contain a real one. */
export const TOKEN = "TOKEN";

/** Returns a literal of Power Query M: doubles quotes, escapes control characters and `#(`. */
export function toMLiteral(text: string): string {
  const escaped = text.replace(/#\(|"|\p{Cc}/gu, (each) => {
    if (each === "#(") {
      return "#(#)(";
    }
    return each === '"' ? '""' : `#(${each.charCodeAt(0).toString(16).padStart(4, "0")})`;
  });
  return `"${escaped}"`;
}

/** Returns a name as a field of an M record. */
export function toMField(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `#${toMLiteral(name)}`;
}
