// Exports: their check in the browser, their file names, and the command that fetches a whole chain.
import { hasWebCrypto } from "@/proof/bytes.ts";
import { type ChainName, isScoped } from "@/proof/chains.ts";
import type { JsonObject } from "@/proof/record.ts";
import { findAltered, findGaps } from "./alteration.ts";
import { toRecordView } from "./recordView.ts";

export type ExportFormat = "json" | "csv";

/** Maximum records of one export. */
export const MAX_EXPORTED = 100_000;

/** RecordIDs that the check of an export found, in the order of the file. */
export interface CheckedExport {
  /** Altered or damaged records. */
  readonly altered: readonly string[];
  /** Other records that are next to a missing one. */
  readonly besideGaps: readonly string[];
}

/**
 * Checks the records of an export like those of the list.
 *
 * @param file an export, oldest first
 * @param isFiltered whether filters exclude records, so that a gap is no sign
 * @returns undefined if the format does not contain whole records, or this browser cannot compute hashes
 */
export async function checkExport(
  file: Blob,
  format: ExportFormat,
  isFiltered: boolean,
  signal: AbortSignal,
): Promise<CheckedExport | undefined> {
  if (format === "csv" || !hasWebCrypto()) {
    return undefined;
  }
  const records: readonly JsonObject[] = JSON.parse(await file.text());
  const rows = records.map(toRecordView);
  const newestFirst = rows.toReversed();
  const altered = await findAltered(newestFirst, signal);
  const besideGaps = new Set(isFiltered ? [] : findGaps(newestFirst, true));
  const listIds = (isFound: (sequence: number) => boolean) =>
    rows.filter(({ sequence }) => isFound(sequence)).map(({ id }) => id);
  return {
    altered: listIds((sequence) => altered.has(sequence)),
    besideGaps: listIds((sequence) => besideGaps.has(sequence) && !altered.has(sequence)),
  };
}

/** Returns a file name; characters that file systems may reject become `_`. */
export function buildExportName(chain: ChainName, format: ExportFormat): string {
  const name = isScoped(chain.target) ? `${chain.target}-${chain.scopeKey}` : chain.target;
  return `provenance-${name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 120)}.${format}`;
}

/** Returns the command that fetches a whole chain, however long, into one file. */
export function buildFetchCommand(origin: string, chain: ChainName): string {
  const scope = isScoped(chain.target) ? ` --scope ${quote(chain.scopeKey)}` : "";
  const out = buildExportName(chain, "json");
  return `OI_TOKEN=… oi audit fetch ${origin} --target ${chain.target}${scope} --out ${quote(out)}`;
}

/** Quotes an argument for a POSIX shell. */
function quote(argument: string): string {
  return /^[A-Za-z0-9._/:@%+=-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
