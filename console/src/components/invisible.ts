/** A piece of a text: visible text, or an escaped invisible character. */
export interface Piece {
  text: string;
  isInvisible: boolean;
}

// Direction marks, joiners, fillers, controls, lone surrogates; tabs and line ends have a visible effect.
const INVISIBLE = /(?![\t\n]|\r\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

// In a name, also spaces at either end, repeated spaces, and all other blanks: names that differ in them look equal.
const INVISIBLE_IN_NAMES =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}|^ | $|(?<= ) /gu;

/**
 * Splits a text at invisible characters, which could disguise its real content.
 * @param isName whether the text is the name of one thing, such as a scope, in which spaces matter
 */
export function splitPieces(text: string, isName = false): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(isName ? INVISIBLE_IN_NAMES : INVISIBLE)) {
    if (match.index > from) {
      found.push({ text: text.slice(from, match.index), isInvisible: false });
    }
    found.push({ text: escapeCharacter(match[0]), isInvisible: true });
    from = match.index + match[0].length;
  }
  return from < text.length ? [...found, { text: text.slice(from), isInvisible: false }] : found;
}

/** Escapes invisible characters, for places without markup. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, escapeCharacter);
}

/** Returns the escaped invisible characters of texts, each once. */
export function findInvisible(...texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => [...text.matchAll(INVISIBLE)].map(([each]) => escapeCharacter(each))))];
}

function escapeCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}
