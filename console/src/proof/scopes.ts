// Recent scopes of this tab, the first suggestions of scope fields.
import { recall, remember } from "@/session/tabMemory.ts";

const NAME = "scopes";
const MOST = 12;

/** Returns the recent scopes, the latest first. */
export function recallScopes(): readonly string[] {
  const found = recall(NAME);
  return Array.isArray(found) ? found.filter((scope) => typeof scope === "string") : [];
}

/** Adds a scope to the recent ones, as the first. */
export function rememberScope(scope: string): void {
  if (scope !== "") {
    remember(NAME, [scope, ...recallScopes().filter((other) => other !== scope)].slice(0, MOST));
  }
}
