// What an export is called, and what to do where it is a prefix.
import { type ChainName, isScoped } from "@/proof/chains.ts";

export type ExportFormat = "json" | "csv";

/** Most records that one export gives. */
export const MOST_EXPORTED = 100_000;

/** Returns a file's name; characters that file systems may refuse become `_`. */
export function exportName(chain: ChainName, format: ExportFormat): string {
  const name = isScoped(chain.target) ? `${chain.target}-${chain.scopeKey}` : chain.target;
  return `provenance-${name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 120)}.${format}`;
}

/** Returns the command that fetches a whole chain, however long, into one file. */
export function fetchCommand(origin: string, chain: ChainName): string {
  const scope = isScoped(chain.target) ? ` --scope ${quoted(chain.scopeKey)}` : "";
  const out = exportName(chain, "json");
  return `OI_TOKEN=… python -m shared.provenance.verify fetch ${origin} --target ${chain.target}${scope} --out ${quoted(out)}`;
}

/** Returns an argument as a POSIX shell reads it back. */
function quoted(argument: string): string {
  return /^[A-Za-z0-9._/:@%+=-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
