/** A piece of a text: as it is, or a character that nobody sees, written out. */
export interface Piece {
  text: string;
  unseen: boolean;
}

// Directions, joiners, fillers, controls, halves of pairs; tabs and ends of lines are seen by what they do.
const UNSEEN = /(?![\t\n]|\r\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Splits a text at the characters that nobody sees, which could let it read otherwise than it is. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > from) {
      found.push({ text: text.slice(from, match.index), unseen: false });
    }
    found.push({ text: writtenOut(match[0]), unseen: true });
    from = match.index + match[0].length;
  }
  return from < text.length ? [...found, { text: text.slice(from), unseen: false }] : found;
}

/** A text with what nobody sees written out, for places that hold nothing but text. */
export function seen(text: string): string {
  return text.replace(UNSEEN, writtenOut);
}

/** The characters in some texts that nobody sees, each once, written out. */
export function unseenIn(...texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => [...text.matchAll(UNSEEN)].map(([each]) => writtenOut(each))))];
}

function writtenOut(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}
