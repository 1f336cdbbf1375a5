import type { Amendment } from "@/api/amendments.ts";
import { Button } from "@/components/Button.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import css from "./Amendments.module.css";
import { buildEntityAddress } from "./place.ts";

/** Confirmation of a stored amendment, with the next steps. */
export function StoredAmendment({ scope, made, onAgain }: { scope: string; made: Amendment; onAgain: () => void }) {
  return (
    <Panel title="Amendment recorded">
      <Notice kind="good" title={`Recorded as ${made.RecordID}; the status is ${made.Status}`}>
        {made.Status === "pending"
          ? "Another person must approve it; they find it under “To decide” in this scope."
          : "This workspace requires no approval: the amendment is effective now."}
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
