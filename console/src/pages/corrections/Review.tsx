import type { NewAmendment } from "@/api/amendments.ts";
import { Button } from "@/components/Button.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { Panel } from "@/shell/Page.tsx";
import css from "./Corrections.module.css";

interface Props {
  correction: NewAmendment;
  busy: boolean;
  error: unknown;
  onBack: () => void;
  onSend: () => void;
}

/** Shows what a correction changes before it is sent. */
export function Review({ correction, busy, error, onBack, onSend }: Props) {
  return (
    <Panel title={`Review: ${correction.EntityType} ${correction.EntityID}`}>
      <JsonDiff before={correction.OriginalRecord} after={correction.AmendedRecord} />
      <p>
        <b>{correction.ReasonCategory}</b>
        {correction.ReasonText && `: ${correction.ReasonText}`}
      </p>
      <p class={css.soft}>
        The correction is recorded under your name, for good. Where the workspace asks for approval, it counts once
        somebody else approved it.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
      <div class={css.row}>
        <Button disabled={busy} onClick={onBack}>
          Back
        </Button>
        <Button kind="primary" busy={busy} onClick={onSend}>
          {error === undefined ? "Send correction" : "Send again"}
        </Button>
      </div>
    </Panel>
  );
}
