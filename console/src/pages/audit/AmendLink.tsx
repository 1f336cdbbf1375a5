import { entityAddress } from "@/pages/amendments/place.ts";
import { type ChainName, isScoped } from "@/proof/chains.ts";
import { href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import css from "./Audit.module.css";
import type { Shown } from "./shown.ts";

/** Leads from a plant event to an amendment that begins with it, and from an amendment to its entity's timeline. */
export function AmendLink({ chain, record }: { chain: ChainName; record: Shown }) {
  const canRead = useCan("Workspace.Amendment.Read");
  const canCreate = useCan("Workspace.Amendment.Create");
  if (!isScoped(chain.target) || record.damaged || !canRead) {
    return null;
  }
  if (chain.target === "DomainAmendments") {
    return (
      <a class={css.button} href={entityAddress(chain.scopeKey, record.entityId)}>
        Amendments of {record.entityId}
      </a>
    );
  }
  return !canCreate ? null : (
    <a class={css.button} href={href("amendments", [chain.scopeKey, "new"], { record: record.sequence })}>
      Amend it
    </a>
  );
}
