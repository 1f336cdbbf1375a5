// Checkpoints that this tab has opened: later ones must contain them, otherwise the chain was rewritten.
import { recall, remember } from "@/session/tabMemory.ts";
import type { ChainName } from "./chains.ts";

const NAME = "checkpoints";

/** Returns the remembered signed note of a chain; undefined without one. */
export function recallNote(chain: ChainName): string | undefined {
  const note = recallNotes()[buildName(chain)];
  return typeof note === "string" ? note : undefined;
}

/** Remembers an opened signed note. */
export function rememberNote(chain: ChainName, note: string): void {
  remember(NAME, { ...recallNotes(), [buildName(chain)]: note });
}

function buildName(chain: ChainName): string {
  return `${chain.target}/${chain.scopeKey}`;
}

function recallNotes(): Readonly<Record<string, unknown>> {
  const found = recall(NAME);
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
}
