/** A text that an editor offers. */
export interface Completion {
  text: string;
  /** What it is: "function", "table". */
  note: string;
  /** Text to insert, if it is not the shown one. */
  insert?: string;
}

/** Offers of an editor at a position. */
export interface Completions {
  /** Start of the word that a completion replaces. */
  from: number;
  items: readonly Completion[];
}

/** Returns the completions at an offset of a text. */
export type Complete = (text: string, offset: number) => Completions;

/** What a key does while completions are open. */
export type CompletionAction = { kind: "move"; to: number } | { kind: "accept" } | { kind: "close" };

/** Returns the effect of a key while completions are open; undefined for other keys. */
export function findCompletionAction(key: string, active: number, count: number): CompletionAction | undefined {
  switch (key) {
    case "ArrowDown":
      return { kind: "move", to: (active + 1) % count };
    case "ArrowUp":
      return { kind: "move", to: (active - 1 + count) % count };
    case "Enter":
    case "Tab":
      return { kind: "accept" };
    case "Escape":
      return { kind: "close" };
    default:
      return undefined;
  }
}
