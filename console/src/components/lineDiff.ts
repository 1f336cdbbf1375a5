// Differences of two texts, line by line and, inside changed lines, word by word.

/** A part of a line; `isChanged` if the other text does not have it. */
export interface Piece {
  text: string;
  isChanged: boolean;
}

/** A line of the comparison; numbers count from 1 and are undefined where the text has no such line. */
export interface DiffLine {
  change: "same" | "removed" | "added";
  before: number | undefined;
  after: number | undefined;
  pieces: readonly Piece[];
}

/** An element that both sequences contain, or only one of them. */
export interface Step {
  change: DiffLine["change"];
  text: string;
}

/** Larger comparisons would block the page; then everything between equal beginnings and ends counts as changed. */
const MOST_CELLS = 4_000_000;
const WORD = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;

/** Compares two texts; each removed line that is similar to an added one is compared with it by words. */
export function diffLines(before: string, after: string): DiffLine[] {
  const found: DiffLine[] = [];
  let numbers = { before: 0, after: 0 };
  const steps = diffSequences(before.split("\n"), after.split("\n"));
  for (let at = 0; at < steps.length; ) {
    const block = takeBlock(steps, at);
    at += block.length;
    for (const { change, pieces } of compareBlock(block)) {
      numbers = {
        before: numbers.before + (change === "added" ? 0 : 1),
        after: numbers.after + (change === "removed" ? 0 : 1),
      };
      found.push({
        change,
        pieces,
        before: change === "added" ? undefined : numbers.before,
        after: change === "removed" ? undefined : numbers.after,
      });
    }
  }
  return found;
}

/** Splits a text into words, blanks and single signs. */
export function splitWords(text: string): string[] {
  return text.match(WORD) ?? [];
}

/** Returns one equal element, or all removed and added ones up to the next equal one. */
export function takeBlock(steps: readonly Step[], from: number): readonly Step[] {
  if (steps[from]?.change === "same") {
    return steps.slice(from, from + 1);
  }
  const end = steps.findIndex((step, index) => index >= from && step.change === "same");
  return steps.slice(from, end < 0 ? steps.length : end);
}

function compareBlock(block: readonly Step[]): Pick<DiffLine, "change" | "pieces">[] {
  const removed = block.filter((step) => step.change === "removed").map((step) => step.text);
  const added = block.filter((step) => step.change === "added").map((step) => step.text);
  const same = block.filter((step) => step.change === "same");
  const pairs = removed.map((text, index) => compareWords(text, added[index]));
  return [
    ...same.map(({ text }) => ({ change: "same" as const, pieces: [{ text, isChanged: false }] })),
    ...removed.map((text, index) => ({
      change: "removed" as const,
      pieces: pairs[index]?.removed ?? [{ text, isChanged: true }],
    })),
    ...added.map((text, index) => ({
      change: "added" as const,
      pieces: pairs[index]?.added ?? [{ text, isChanged: true }],
    })),
  ];
}

/** Compares two lines by words; undefined if they have no word in common. */
function compareWords(before: string, after: string | undefined) {
  if (after === undefined) {
    return undefined;
  }
  const steps = diffSequences(splitWords(before), splitWords(after));
  const isSimilar = steps.some(({ change, text }) => change === "same" && text.trim() !== "");
  return isSimilar ? { removed: toPieces(steps, "removed"), added: toPieces(steps, "added") } : undefined;
}

function toPieces(steps: readonly Step[], side: "removed" | "added"): Piece[] {
  const pieces: Piece[] = [];
  for (const { change, text } of steps.filter((step) => step.change === "same" || step.change === side)) {
    const isChanged = change === side;
    const last = pieces.at(-1);
    if (last?.isChanged === isChanged) {
      last.text += text;
    } else {
      pieces.push({ text, isChanged });
    }
  }
  return pieces;
}

/** Returns the shortest steps from one sequence to the other. */
export function diffSequences(before: readonly string[], after: readonly string[]): Step[] {
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) {
    start += 1;
  }
  let end = 0;
  while (
    end < Math.min(before.length, after.length) - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end += 1;
  }
  const mark = (texts: readonly string[], change: Step["change"]) => texts.map((text) => ({ change, text }));
  return [
    ...mark(before.slice(0, start), "same"),
    ...diffMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...mark(before.slice(before.length - end), "same"),
  ];
}

function diffMiddle(before: readonly string[], after: readonly string[]): Step[] {
  const width = after.length + 1;
  const common = before.length * after.length > MOST_CELLS ? undefined : countCommon(before, after, width);
  const steps: Step[] = [];
  let [left, right] = [0, 0];
  while (left < before.length || right < after.length) {
    const [removed, added] = [before[left], after[right]];
    if (common && removed !== undefined && removed === added) {
      steps.push({ change: "same", text: removed });
      left += 1;
      right += 1;
    } else if (removed !== undefined && (added === undefined || isLonger(common, width, left, right))) {
      steps.push({ change: "removed", text: removed });
      left += 1;
    } else {
      steps.push({ change: "added", text: added ?? "" });
      right += 1;
    }
  }
  return steps;
}

/** Tells whether skipping an element of the first sequence keeps at least as many common elements. */
function isLonger(common: Uint32Array | undefined, width: number, left: number, right: number): boolean {
  return common === undefined || (common[(left + 1) * width + right] ?? 0) >= (common[left * width + right + 1] ?? 0);
}

/** Returns a table of the lengths of longest common subsequences of the ends from each pair of positions on. */
function countCommon(before: readonly string[], after: readonly string[], width: number): Uint32Array {
  const table = new Uint32Array((before.length + 1) * width);
  for (let left = before.length - 1; left >= 0; left -= 1) {
    for (let right = after.length - 1; right >= 0; right -= 1) {
      const at = left * width + right;
      table[at] =
        before[left] === after[right]
          ? (table[at + width + 1] ?? 0) + 1
          : Math.max(table[at + width] ?? 0, table[at + 1] ?? 0);
    }
  }
  return table;
}

/** Unchanged lines around a change that stay visible. */
const CONTEXT = 3;

/** Returns for each line whether it is shown: changed lines, and unchanged ones near them. */
export function chooseVisible(lines: readonly DiffLine[]): boolean[] {
  const changed = lines.flatMap((line, index) => (line.change === "same" ? [] : [index]));
  const shown = new Array<boolean>(lines.length).fill(false);
  for (const index of changed) {
    shown.fill(true, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  }
  return shown;
}
