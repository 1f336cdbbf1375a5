/** A piece of a text: as it is, or a character that nobody sees, written out. */
export interface Piece {
  text: string;
  isInvisible: boolean;
}

// Directions, joiners, fillers, controls, halves of pairs; tabs and ends of lines are seen by what they do.
const INVISIBLE = /(?![\t\n]|\r\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Splits a text at the characters that nobody sees, which could let it read otherwise than it is. */
export function splitPieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    if (match.index > from) {
      found.push({ text: text.slice(from, match.index), isInvisible: false });
    }
    found.push({ text: escapeCharacter(match[0]), isInvisible: true });
    from = match.index + match[0].length;
  }
  return from < text.length ? [...found, { text: text.slice(from), isInvisible: false }] : found;
}

/** A text with what nobody sees written out, for places that hold nothing but text. */
export function escapeInvisible(text: string): string {
  return text.replace(INVISIBLE, escapeCharacter);
}

/** The characters in some texts that nobody sees, each once, written out. */
export function findInvisible(...texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => [...text.matchAll(INVISIBLE)].map(([each]) => escapeCharacter(each))))];
}

function escapeCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}
