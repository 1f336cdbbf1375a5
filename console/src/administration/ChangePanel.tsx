import type { ItemChange, StoredItem } from "@/api/items.ts";
import { Time } from "@/components/Time.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import { ItemHistory } from "@/history/ItemHistory.tsx";
import type { AuditedItem } from "@/history/itemHistory.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Administration.module.css";

interface Props {
  item: StoredItem & Partial<ItemChange>;
  audited: AuditedItem;
  /** Whether another person removed the item after this version. */
  isRemoved?: boolean;
}

/** The latest change of an item and, if the token can read the audit log, all changes. */
export function ChangePanel({ item, audited, isRemoved = false }: Props) {
  const reads = useHasRights("Workspace.Provenance.Read");
  return (
    <Panel title="Changes">
      {item.editedBy !== undefined && !isRemoved && <LastChange of={item} />}
      {reads ? (
        <ItemHistory item={audited} version={[item.etag, isRemoved]} />
      ) : (
        <p class={css.soft}>To see the changes you need Workspace.Provenance.Read.</p>
      )}
    </Panel>
  );
}

function LastChange({ of }: { of: Partial<ItemChange> }) {
  return (
    <p>
      Last changed by <VisibleText text={of.editedBy ?? "the workspace document"} />
      {of.updatedAt && ", "}
      {of.updatedAt && <Time at={of.updatedAt} />}
    </p>
  );
}
