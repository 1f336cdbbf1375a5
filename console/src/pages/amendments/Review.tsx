import type { NewAmendment } from "@/api/amendments.ts";
import { Button } from "@/components/Button.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import css from "./Amendments.module.css";

interface Props {
  amendment: NewAmendment;
  busy: boolean;
  error: unknown;
  onBack: () => void;
  onSend: () => void;
}

/** A review of an amendment's changes before it is sent. */
export function Review({ amendment, busy, error, onBack, onSend }: Props) {
  return (
    <Panel title={`Review: ${amendment.EntityType} ${amendment.EntityID}`}>
      <JsonDiff before={amendment.OriginalRecord} after={amendment.AmendedRecord} />
      <p>
        <b>{amendment.ReasonCategory}</b>
        {amendment.ReasonText && `: ${amendment.ReasonText}`}
      </p>
      <p class={css.soft}>
        The amendment is recorded permanently under your name. If the workspace requires approval, it is effective after
        another person approves it.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
      <div class={css.row}>
        <Button disabled={busy} onClick={onBack}>
          Back
        </Button>
        <Button kind="primary" busy={busy} onClick={onSend}>
          {error === undefined ? "Send amendment" : "Send again"}
        </Button>
      </div>
    </Panel>
  );
}
