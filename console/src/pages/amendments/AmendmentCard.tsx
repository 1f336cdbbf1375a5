import type { ComponentChildren } from "preact";
import type { Amendment } from "@/api/amendments.ts";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Time } from "@/components/Time.tsx";
import { LongText, VisibleText } from "@/components/VisibleText.tsx";
import { buildRecordAddress } from "@/pages/audit/place.ts";
import { parseRecordId } from "@/proof/record.ts";
import { useHasRights } from "@/session/hooks.ts";
import { AlteredNotice } from "./AlteredNotice.tsx";
import { AmendmentStatus } from "./AmendmentStatus.tsx";
import css from "./Amendments.module.css";
import { buildEntityAddress } from "./place.ts";

interface Props {
  scope: string;
  amendment: Amendment;
  /** Its current status. */
  status: string;
  /** Its actions. */
  children?: ComponentChildren;
}

/** An amendment: its changes, author, time and reason. */
export function AmendmentCard({ scope, amendment, status, children }: Props) {
  const { EntityType: type, EntityID: entity } = amendment;
  return (
    <article class={css.card} tabIndex={-1} aria-label={`Amendment ${amendment.RecordID}`}>
      <header>
        <h2>
          <VisibleText text={type} />{" "}
          <a href={buildEntityAddress(scope, entity)}>
            <VisibleText text={entity} />
          </a>
        </h2>
        <AmendmentStatus status={status} />
      </header>
      <p class={css.soft}>
        {amendment.AmendedBy}, <Time at={amendment.AmendedAt} /> · <AuditLink scope={scope} id={amendment.RecordID} />
      </p>
      <AlteredNotice record={amendment} />
      <JsonDiff before={amendment.OriginalRecord} after={amendment.AmendedRecord} />
      <p>
        <b>{amendment.ReasonCategory}</b>
        {amendment.ReasonText && (
          <>
            : <LongText text={amendment.ReasonText} />
          </>
        )}
      </p>
      {children}
    </article>
  );
}

/** The record's id; a link to the audit log if the caller may read it. */
export function AuditLink({ scope, id }: { scope: string; id: string }) {
  const canRead = useHasRights("Workspace.Provenance.Read");
  const sequence = parseRecordId(id);
  if (!canRead || sequence === null) {
    return <code>{id}</code>;
  }
  return (
    <a href={buildRecordAddress({ target: "DomainAmendments", scopeKey: scope }, sequence)}>
      <code>{id}</code>
    </a>
  );
}
