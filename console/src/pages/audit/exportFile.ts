// What an export is called, and what to do where it is a prefix.
import { type ChainName, isScoped } from "@/proof/chains.ts";

export type ExportFormat = "json" | "csv";

/** Most records that one export gives. */
export const MAX_EXPORTED = 100_000;

/** Returns a file's name; characters that file systems may refuse become `_`. */
export function buildExportName(chain: ChainName, format: ExportFormat): string {
  const name = isScoped(chain.target) ? `${chain.target}-${chain.scopeKey}` : chain.target;
  return `provenance-${name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 120)}.${format}`;
}

/** Returns the command that fetches a whole chain, however long, into one file. */
export function buildFetchCommand(origin: string, chain: ChainName): string {
  const scope = isScoped(chain.target) ? ` --scope ${quote(chain.scopeKey)}` : "";
  const out = buildExportName(chain, "json");
  return `OI_TOKEN=… python -m shared.provenance.verify fetch ${origin} --target ${chain.target}${scope} --out ${quote(out)}`;
}

/** Returns an argument as a POSIX shell reads it back. */
function quote(argument: string): string {
  return /^[A-Za-z0-9._/:@%+=-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
