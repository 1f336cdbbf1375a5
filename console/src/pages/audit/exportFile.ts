// File names of exports, and the command that fetches a whole chain.
import { type ChainName, isScoped } from "@/proof/chains.ts";

export type ExportFormat = "json" | "csv";

/** Maximum records of one export. */
export const MAX_EXPORTED = 100_000;

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
