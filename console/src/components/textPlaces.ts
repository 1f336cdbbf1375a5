/** A position in a text; both numbers start at 1. */
export interface Place {
  line: number;
  column: number;
}

/** An error in a text; without a place it concerns the whole text. */
export interface TextError {
  message: string;
  place: Place | undefined;
}

/** Converts a position to an offset from 0; a column after the end of a line becomes the end. */
export function computeOffset(text: string, place: Place): number {
  const lines = text.split("\n");
  const before = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const length = lines[place.line - 1]?.length ?? 0;
  return Math.min(text.length, before + Math.min(place.column - 1, length));
}

/** Converts an offset from 0 to a position. */
export function computePlace(lines: readonly string[], offset: number): Place {
  let left = offset;
  for (const [index, line] of lines.entries()) {
    if (left <= line.length) {
      return { line: index + 1, column: left + 1 };
    }
    left -= line.length + 1;
  }
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
}

/** Returns the width of a line up to a column, in characters; tabs advance to multiples of `tabs`. */
export function measureColumn(line: string, column: number, tabs: number): number {
  return [...line.slice(0, column - 1)].reduce((at, each) => (each === "\t" ? at - (at % tabs) + tabs : at + 1), 0);
}

/** Returns the length of the word at a column; at least 1. */
export function measureWord(line: string, column: number): number {
  return /^[\w-]+/.exec(line.slice(column - 1))?.[0].length ?? 1;
}

const LINES_BEFORE = 10;
/** Enough for a text area that the user enlarges. */
const LINES_AFTER = 60;

/** Returns the range of lines to draw: visible ones and some around them. */
export function findVisibleLines(scrollTop: number, height: number, lineHeight: number, lines: number) {
  const start = Math.max(0, Math.floor(scrollTop / lineHeight) - LINES_BEFORE);
  return { start, end: Math.min(lines, Math.ceil((scrollTop + height) / lineHeight) + LINES_AFTER) };
}
