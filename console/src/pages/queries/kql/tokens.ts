// Tokens of KQL, for highlighting.
import type { Token } from "@/components/CodeHighlight.tsx";
import { FUNCTIONS, OPERATORS } from "./languageNames.ts";
import { COLUMNS, KEYWORDS, TABLE, TYPES } from "./words.ts";

const WORDS: ReadonlyMap<string, Token["kind"]> = new Map([
  ...FUNCTIONS.map((word) => [word, "function"] as const),
  ...TYPES.map((word) => [word, "type"] as const),
  ...[...OPERATORS, ...KEYWORDS].map((word) => [word, "keyword"] as const),
  ...["true", "false", "null"].map((word) => [word, "number"] as const),
  ...[TABLE, ...Object.keys(COLUMNS)].map((word) => [word, "name"] as const),
]);

/** One alternative for each kind: comment, text, number or duration, word. None of them can match in two ways. */
const TOKEN =
  /(\/\/[^\n]*)|(```[\s\S]*?(?:```|$)|[hH]?@"[^"\n]*"?|[hH]?@'[^'\n]*'?|[hH]?"(?:[^"\\\n]|\\.)*"?|[hH]?'(?:[^'\\\n]|\\.)*'?)|(\b\d[\w.]*)|([A-Za-z_][\w]*(?:-(?:away|keep|rename|reorder|series|apply|expand|kv|where|distinct|nested|hitters)\b)?)/g;

/** Splits KQL into tokens; text between them has no kind. */
export function tokenizeKql(text: string): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) {
      tokens.push({ text: text.slice(end, match.index), kind: undefined });
    }
    tokens.push({ text: match[0], kind: findKind(match, text) });
    end = match.index + match[0].length;
  }
  return end < text.length ? [...tokens, { text: text.slice(end), kind: undefined }] : tokens;
}

function findKind(match: RegExpMatchArray, text: string): Token["kind"] {
  const [word, comment, quoted, number] = match;
  if (comment !== undefined) {
    return "comment";
  }
  if (quoted !== undefined) {
    return "text";
  }
  if (number !== undefined) {
    return "number";
  }
  const kind = WORDS.get(word);
  const called = /^\s*\(/.test(text.slice((match.index ?? 0) + word.length, (match.index ?? 0) + word.length + 8));
  // `count` and `range` are operators, and functions where they are called.
  return called && FUNCTIONS.includes(word) ? "function" : kind === "function" && !called ? undefined : kind;
}
