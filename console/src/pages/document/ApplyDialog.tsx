import type { Plan } from "@/api/workspaceDocument.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Notice } from "@/components/Notice.tsx";
import { VisibleText } from "@/components/VisibleText.tsx";
import css from "./Document.module.css";
import { countWords, describeKind, summarizePlan } from "./planning.ts";

interface Props {
  plan: Plan;
  onClose: () => void;
  onConfirm: () => void;
}

/** A confirmation that names every item that the plan removes. */
export function ApplyDialog({ plan, onClose, onConfirm }: Props) {
  const removed = plan.changes.filter((change) => change.action === "removed");
  return (
    <Dialog
      title="Apply the plan?"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={removed.length > 0 ? "danger" : "primary"} onClick={onConfirm}>
            Apply {countWords(plan.changes.length, "change")}
          </Button>
        </>
      }
    >
      <p>The plan: {summarizePlan(plan)}. Each change is recorded in the audit log under your name.</p>
      {removed.length > 0 && (
        <Notice kind="warn" title={`The plan removes ${countWords(removed.length, "item")}`}>
          <ul class={css.removed}>
            {removed.map(({ kind, key }) => (
              <li key={`${kind}/${key}`}>
                {describeKind(kind)} <VisibleText text={key} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
    </Dialog>
  );
}
