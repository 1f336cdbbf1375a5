import { buildEntityAddress } from "@/pages/amendments/place.ts";
import { type ChainName, isScoped } from "@/proof/chains.ts";
import { buildHref } from "@/router/route.ts";
import { useHasRights } from "@/session/hooks.ts";
import css from "./Audit.module.css";
import type { RecordView } from "./recordView.ts";

/** A link from a plant event to a new amendment, or from an amendment to its entity's timeline. */
export function AmendLink({ chain, record }: { chain: ChainName; record: RecordView }) {
  const canRead = useHasRights("Workspace.Amendment.Read");
  const canCreate = useHasRights("Workspace.Amendment.Create");
  if (!isScoped(chain.target) || record.damaged || !canRead) {
    return null;
  }
  if (chain.target === "DomainAmendments") {
    return (
      <a class={css.button} href={buildEntityAddress(chain.scopeKey, record.entityId)}>
        Amendments of {record.entityId}
      </a>
    );
  }
  return !canCreate ? null : (
    <a class={css.button} href={buildHref("amendments", [chain.scopeKey, "new"], { record: record.sequence })}>
      Amend this record
    </a>
  );
}
