import type { AmendmentRecord, Transition } from "@/api/amendments.ts";
import { Icon } from "@/components/Icon.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { AmendmentCard, AuditLink } from "./AmendmentCard.tsx";
import css from "./Amendments.module.css";
import { toEntry } from "./entries.ts";

interface Props {
  scope: string;
  records: readonly AmendmentRecord[];
  standings: ReadonlyMap<string, string>;
}

/** Amendments and decisions, oldest first. */
export function Timeline({ scope, records, standings }: Props) {
  return (
    <ol class={css.timeline} aria-label="Timeline">
      {records.map((record) => {
        const { id, amendment, decision, damaged } = toEntry(record);
        return (
          <li key={id} class={decision ? css[decision.Meaning] : css.made}>
            <span class={css.mark}>
              <Icon name={decision ? (decision.Meaning === "approval" ? "check" : "close") : "pencil"} />
            </span>
            {damaged && (
              <Notice kind="bad" title={`Record ${id} was changed in the store`}>
                Verify the chain of amendments in the audit log.
              </Notice>
            )}
            {amendment && !damaged && (
              <AmendmentCard scope={scope} amendment={amendment} status={standings.get(id) ?? amendment.Status} />
            )}
            {decision && <DecisionEntry scope={scope} decision={decision} />}
          </li>
        );
      })}
    </ol>
  );
}

function DecisionEntry({ scope, decision }: { scope: string; decision: Transition }) {
  const approved = decision.Meaning === "approval";
  return (
    <article class={css.decided} aria-label={`Decision ${decision.RecordID}`}>
      <p>
        <b>{approved ? "Approved" : "Rejected"}</b>: amendment <code>{decision.AmendmentID}</code>, by{" "}
        {decision.ApprovedBy ?? decision.RejectedBy}
      </p>
      {!approved && <p>{decision.RejectionReason ? `Reason: ${decision.RejectionReason}` : "No reason given."}</p>}
      <p class={css.soft}>
        <Time at={decision.ApprovedAt ?? decision.RejectedAt} /> · <AuditLink scope={scope} id={decision.RecordID} />
      </p>
    </article>
  );
}
