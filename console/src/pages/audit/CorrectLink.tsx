import { type ChainName, isScoped } from "@/proof/chains.ts";
import { href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import css from "./Audit.module.css";
import type { Shown } from "./shown.ts";

/** Leads to a correction that begins with a record of plant events. */
export function CorrectLink({ chain, record }: { chain: ChainName; record: Shown }) {
  const allowed = useCan("Workspace.Amendment.Create", "Workspace.Amendment.Read");
  if (!allowed || !isScoped(chain.target) || chain.target === "DomainAmendments" || record.damaged) {
    return null;
  }
  return (
    <a class={css.button} href={href("corrections", [chain.scopeKey, "new"], { record: record.sequence })}>
      Correct it
    </a>
  );
}
