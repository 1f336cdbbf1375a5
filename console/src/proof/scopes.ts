// The scopes that were opened in this tab: the service has no list of scopes, so the console offers these.
import { recall, remember } from "@/session/tabMemory.ts";

const NAME = "scopes";
const MOST = 12;

/** Returns the scopes that were opened lately, the last one first. */
export function recallScopes(): readonly string[] {
  const found = recall(NAME);
  return Array.isArray(found) ? found.filter((scope) => typeof scope === "string") : [];
}

/** Puts a scope first among those that were opened lately. */
export function rememberScope(scope: string): void {
  if (scope !== "") {
    remember(NAME, [scope, ...recallScopes().filter((other) => other !== scope)].slice(0, MOST));
  }
}
