import type { Amendment } from "@/api/amendments.ts";
import { Button } from "@/components/Button.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import css from "./Amendments.module.css";
import { buildEntityAddress } from "./place.ts";

/** An amendment that was stored, and what comes next. */
export function StoredAmendment({ scope, made, onAgain }: { scope: string; made: Amendment; onAgain: () => void }) {
  return (
    <Panel title="Amendment recorded">
      <Notice kind="good" title={`It is record ${made.RecordID}, ${made.Status}`}>
        {made.Status === "pending"
          ? "Somebody else decides it: it waits for them under “To decide” in this scope."
          : "This workspace asks for no approval: it counts at once."}
      </Notice>
      <div class={css.row}>
        <a class={css.link} href={buildEntityAddress(scope, made.EntityID)}>
          Timeline of {made.EntityID}
        </a>
        <Button icon="plus" onClick={onAgain}>
          Another amendment
        </Button>
      </div>
    </Panel>
  );
}
