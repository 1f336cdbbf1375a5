// Checkpoints that were opened in this tab: a later one must contain them, else the chain was rewritten meanwhile.
import { recall, remember } from "@/session/tabMemory.ts";
import type { ChainName } from "./chains.ts";

const NAME = "checkpoints";

/** Returns the signed note of a chain that was kept; undefined without. */
export function recallNote(chain: ChainName): string | undefined {
  const note = recallNotes()[buildName(chain)];
  return typeof note === "string" ? note : undefined;
}

/** Keeps a signed note that was opened. */
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
