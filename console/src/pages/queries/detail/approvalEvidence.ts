// The audit event that contains the approval of a query.
import type { AuditEvent } from "@/api/provenance.ts";
import type { Approval, WarmQuery } from "@/api/queries.ts";

/** The evidence of an approval: the decision itself, or the import of a document that contains the approval. */
export interface ApprovalEvidence {
  event: AuditEvent;
  isImported: boolean;
}

/** Finds the event that brought an approval; undefined if none of the events contains it. */
export function findApprovalEvidence(events: readonly AuditEvent[], approval: Approval): ApprovalEvidence | undefined {
  const event = events.findLast((each) => isSameApproval(each.AfterState?.approval, approval));
  return event && { event, isImported: !event.ActionType.endsWith(".Approved") };
}

/** Returns the text that is expected while the evidence is loading; an approval before the creation was imported. */
export function describeExpected({ createdAt }: Pick<WarmQuery, "createdAt">, { approvedAt }: Approval): string {
  const record = "(record 000000000000)";
  const isImported = Date.parse(approvedAt) < Date.parse(createdAt);
  return isImported ? `, imported with the workspace document ${record}` : ` ${record}`;
}

function isSameApproval(found: unknown, { approvedBy, approvedAt }: Approval): boolean {
  if (typeof found !== "object" || found === null) {
    return false;
  }
  const { approvedBy: by, approvedAt: at } = found as Partial<Approval>;
  return by === approvedBy && Date.parse(String(at)) === Date.parse(approvedAt);
}
