// Completion of KQL: what fits at a position.
import type { Completion } from "@/components/completions.ts";
import { OPERATORS, SIGNATURES } from "./languageNames.ts";
import { COLUMNS, KEYWORDS, TABLE, TYPES } from "./words.ts";

/** The names of a workspace and of a query. */
export interface KqlNames {
  /** Fields of payloads: position as in `Payload.motor.speed`, and a note such as the unit. */
  signals: readonly { path: string; note: string }[];
  /** Declared parameters with their types. */
  parameters: readonly { name: string; type: string }[];
  /** Values of `ConnectionLookup`. */
  connections: readonly string[];
}

export const NO_NAMES: KqlNames = { signals: [], parameters: [], connections: [] };

const MOST = 50;

/** Returns the completions at an offset of a text, and the start of the word that they replace. */
export function completeKql(text: string, offset: number, names: KqlNames): { from: number; items: Completion[] } {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  const word = /[\w.-]*$/.exec(line)?.[0] ?? "";
  const before = line.slice(0, line.length - word.length);
  if (before.includes("//")) {
    return { from: offset, items: [] };
  }
  const found = listCandidates(text, offset, before, word, names);
  return { from: offset - word.length, items: rank(found, word) };
}

function listCandidates(text: string, offset: number, before: string, word: string, names: KqlNames): Completion[] {
  if (/ConnectionLookup\s*(?:==|!=|=~|in)\s*\(?\s*["']$/.test(before)) {
    return names.connections.map((name) => ({ text: name, note: "connection" }));
  }
  if (isInText(before)) {
    return [];
  }
  const fields = names.signals.map(({ path, note }) => ({ text: `Payload.${path}`, note: note || "signal" }));
  if (word.startsWith("Payload.")) {
    return fields;
  }
  if (/\|\s*$/.test(text.slice(0, offset - word.length))) {
    return OPERATORS.map((name) => ({ text: name, note: "operator" }));
  }
  return [
    ...names.parameters.map(({ name, type }) => ({ text: name, note: `parameter, ${type}` })),
    ...listVariables(text),
    { text: TABLE, note: "table" },
    ...Object.entries(COLUMNS).map(([name, type]) => ({ text: name, note: `column, ${type}` })),
    ...fields,
    ...SIGNATURES.map(toFunction),
    ...KEYWORDS.map((name) => ({ text: name, note: "" })),
    ...TYPES.map((name) => ({ text: name, note: "type" })),
  ];
}

/** Returns the completion of a function, whose note is the list of its parameters. */
function toFunction(signature: string): Completion {
  const end = signature.indexOf("(");
  const name = signature.slice(0, end);
  return { text: name, note: signature.slice(end), insert: `${name}(` };
}

/** Lists the names that the query defines by `let` and `extend`. */
function listVariables(text: string): Completion[] {
  const lets = [...text.matchAll(/\blet\s+(\w+)\s*=/g)].map(([, name = ""]) => ({ text: name, note: "variable" }));
  const columns = [...text.matchAll(/(?:\bextend\b|\bsummarize\b|\bproject\b|,)\s*(\w+)\s*=(?![=~])/g)].map(
    ([, name = ""]) => ({ text: name, note: "column" }),
  );
  return [...lets, ...columns];
}

/** Tells whether the end of a line is within quotes. */
function isInText(line: string): boolean {
  const quotes = line.replace(/\\./g, "").match(/["']/g) ?? [];
  return quotes.length % 2 === 1;
}

/** Orders completions: those that begin with the word first, then those that contain it; each once. */
function rank(found: readonly Completion[], word: string): Completion[] {
  const wanted = word.toLowerCase();
  const unique = [...new Map(found.map((each) => [each.text, each])).values()];
  const starts = unique.filter(({ text }) => text.toLowerCase().startsWith(wanted));
  const contains = unique.filter(
    ({ text }) =>
      wanted.length > 1 && text.toLowerCase().includes(wanted) && !starts.some((each) => each.text === text),
  );
  const items = [...starts, ...contains].slice(0, MOST);
  return items.length === 1 && items[0]?.text === word ? [] : items;
}
