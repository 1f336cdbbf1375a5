import type { Correction, Transition } from "@/api/amendments.ts";
import { Icon } from "@/components/Icon.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { AuditLink, CorrectionCard } from "./CorrectionCard.tsx";
import css from "./Corrections.module.css";
import { entryOf } from "./standing.ts";

interface Props {
  scope: string;
  records: readonly Correction[];
  standings: ReadonlyMap<string, string>;
}

/** Corrections and decisions, oldest first. */
export function Timeline({ scope, records, standings }: Props) {
  return (
    <ol class={css.timeline} aria-label="Timeline">
      {records.map((record) => {
        const { id, correction, decision, damaged } = entryOf(record);
        return (
          <li key={id} class={decision ? css[decision.Meaning] : css.made}>
            <span class={css.mark}>
              <Icon name={decision ? (decision.Meaning === "approval" ? "check" : "close") : "pencil"} />
            </span>
            {damaged && (
              <Notice kind="bad" title={`Record ${id} was changed in the store`}>
                Verify the chain of corrections in the audit log.
              </Notice>
            )}
            {correction && !damaged && (
              <CorrectionCard scope={scope} correction={correction} status={standings.get(id) ?? correction.Status} />
            )}
            {decision && <Decided scope={scope} decision={decision} />}
          </li>
        );
      })}
    </ol>
  );
}

function Decided({ scope, decision }: { scope: string; decision: Transition }) {
  const approved = decision.Meaning === "approval";
  return (
    <article class={css.decided} aria-label={`Decision ${decision.RecordID}`}>
      <p>
        <b>{approved ? "Approved" : "Rejected"}</b>: correction <code>{decision.AmendmentID}</code>, by{" "}
        {decision.ApprovedBy ?? decision.RejectedBy}
      </p>
      {!approved && <p>{decision.RejectionReason ? `Because: ${decision.RejectionReason}` : "No reason was given."}</p>}
      <p class={css.soft}>
        <Time at={decision.ApprovedAt ?? decision.RejectedAt} /> · <AuditLink scope={scope} id={decision.RecordID} />
      </p>
    </article>
  );
}
