import type { ImportFormat } from "@/api/imports.ts";

/** What the start of a file tells: its format, delimiter and columns. */
export interface FileFacts {
  format: ImportFormat;
  delimiter: string;
  /** Empty if the browser cannot tell, as for Parquet. */
  columns: string[];
}

const HEAD_BYTES = 65_536;
const DELIMITERS = [",", ";", "\t", "|"];
const TIME_NAMES = ["timestamp", "datetime", "time", "date", "ts", "zeit", "zeitstempel"];

/** Reads the start of a file. */
export async function inspectFile(file: File): Promise<FileFacts> {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  return inspectHead(file.name, decode(head));
}

/** Returns the facts of a file from its name and its first characters. */
export function inspectHead(name: string, text: string): FileFacts {
  const format = guessFormat(name, text);
  const [line = ""] = text.split(/\r?\n/, 1);
  if (format === "parquet") {
    return { format, delimiter: ",", columns: [] };
  }
  if (format === "ndjson") {
    return { format, delimiter: ",", columns: listMembers(line) };
  }
  const delimiter = DELIMITERS.reduce((best, each) => (count(line, each) > count(line, best) ? each : best));
  return { format, delimiter, columns: line.split(delimiter).map((cell) => cell.trim().replace(/^"|"$/g, "")) };
}

/** Returns the column that probably has the times. */
export function guessTimeColumn(columns: readonly string[]): string {
  return columns.find((name) => TIME_NAMES.includes(name.toLowerCase())) ?? columns[0] ?? "";
}

function guessFormat(name: string, text: string): ImportFormat {
  if (text.startsWith("PAR1") || /\.(parquet|pq)$/i.test(name)) {
    return "parquet";
  }
  return text.startsWith("{") || /\.(ndjson|jsonl)$/i.test(name) ? "ndjson" : "csv";
}

function listMembers(line: string): string[] {
  try {
    return Object.keys(JSON.parse(line) as object);
  } catch {
    return [];
  }
}

function count(text: string, part: string): number {
  return text.split(part).length;
}

function decode(head: Uint8Array): string {
  const [first, second] = head;
  const encoding =
    first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding).decode(head);
}
