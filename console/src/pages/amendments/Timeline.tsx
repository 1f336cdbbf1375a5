import type { AmendmentRecord, Transition } from "@/api/amendments.ts";
import { readSignature } from "@/api/signatures.ts";
import { Icon } from "@/components/Icon.tsx";
import { Time } from "@/components/Time.tsx";
import { LongText } from "@/components/VisibleText.tsx";
import { SignatureText } from "@/signing/SignatureText.tsx";
import { AlteredNotice, BrokenLinksNotice, DamagedNotice } from "./AlteredNotice.tsx";
import { AmendmentCard, AuditLink } from "./AmendmentCard.tsx";
import css from "./Amendments.module.css";
import { collectStatuses, findCurrentStatus, toEntry } from "./entries.ts";
import { useAlteredIds } from "./useAlteredRecords.ts";

interface Props {
  scope: string;
  records: readonly AmendmentRecord[];
  /** Ids of the amendments that are not decided yet. */
  pending: ReadonlySet<string>;
}

/** Amendments and decisions, oldest first. */
export function Timeline({ scope, records, pending }: Props) {
  const known = collectStatuses(records, pending, useAlteredIds(records));
  return (
    <>
      <BrokenLinksNotice records={records} />
      <ol class={css.timeline} aria-label="Timeline">
        {records.map((record) => {
          const entry = toEntry(record);
          const { id, amendment, decision, damaged } = entry;
          return (
            <li key={id} class={decision ? css[decision.Meaning] : css.made}>
              <span class={css.mark}>
                <Icon name={decision ? (decision.Meaning === "approval" ? "check" : "close") : "pencil"} />
              </span>
              {damaged && <DamagedNotice id={id} />}
              {amendment && !damaged && (
                <AmendmentCard scope={scope} amendment={amendment} status={findCurrentStatus(entry, known)} />
              )}
              {decision && <DecisionEntry scope={scope} decision={decision} />}
            </li>
          );
        })}
      </ol>
    </>
  );
}

function DecisionEntry({ scope, decision }: { scope: string; decision: Transition }) {
  const approved = decision.Meaning === "approval";
  const signature = readSignature(decision.Signature);
  return (
    <article class={css.decided} aria-label={`Decision ${decision.RecordID}`}>
      <AlteredNotice record={decision} />
      <p>
        <b>{approved ? "Approved" : "Rejected"}</b>: amendment <code>{decision.AmendmentID}</code>, by{" "}
        {decision.ApprovedBy ?? decision.RejectedBy}
      </p>
      {signature && <SignatureText signature={signature} />}
      {!approved && (
        <p>
          <LongText text={decision.RejectionReason ? `Reason: ${decision.RejectionReason}` : "No reason given."} />
        </p>
      )}
      <p class={css.soft}>
        {!signature && (
          <>
            <Time at={decision.ApprovedAt ?? decision.RejectedAt} /> ·{" "}
          </>
        )}
        <AuditLink scope={scope} id={decision.RecordID} />
      </p>
    </article>
  );
}
