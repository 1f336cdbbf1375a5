// The choice of chains for a bundle.
import { type AuditScope, toChainName } from "@/api/auditScopes.ts";
import type { AuditBundle } from "@/api/bundles.ts";
import { type ChainName, formatChain } from "@/proof/chains.ts";

const NAMED = 2;

/** Returns a unique key of a chain. */
export function toKey({ target, scopeKey }: ChainName): string {
  return `${target}/${scopeKey}`;
}

/** Returns the chains whose name contains every word of a text. */
export function filterChains(scopes: readonly AuditScope[], text: string): ChainName[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return scopes.map(toChainName).filter((chain) => {
    const name = formatChain(chain).toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/** Returns the name of a bundle: its chains, at most two of them. */
export function nameBundle({ scopes }: Pick<AuditBundle, "scopes">): string {
  const names = scopes.map(({ target, scopeKey }) => formatChain({ target, scopeKey: scopeKey ?? "" }));
  const rest = names.length - NAMED;
  return rest > 0 ? `${names.slice(0, NAMED).join(", ")} and ${rest} more` : names.join(", ");
}
