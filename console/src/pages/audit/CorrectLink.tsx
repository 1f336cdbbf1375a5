import { entityAddress } from "@/pages/corrections/place.ts";
import { type ChainName, isScoped } from "@/proof/chains.ts";
import { href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import css from "./Audit.module.css";
import type { Shown } from "./shown.ts";

/** Leads from a plant event to a correction that begins with it, and from a correction to its entity's timeline. */
export function CorrectLink({ chain, record }: { chain: ChainName; record: Shown }) {
  const canRead = useCan("Workspace.Amendment.Read");
  const canCreate = useCan("Workspace.Amendment.Create");
  if (!isScoped(chain.target) || record.damaged || !canRead) {
    return null;
  }
  if (chain.target === "DomainAmendments") {
    return (
      <a class={css.button} href={entityAddress(chain.scopeKey, record.entityId)}>
        Corrections of {record.entityId}
      </a>
    );
  }
  return !canCreate ? null : (
    <a class={css.button} href={href("corrections", [chain.scopeKey, "new"], { record: record.sequence })}>
      Correct it
    </a>
  );
}
