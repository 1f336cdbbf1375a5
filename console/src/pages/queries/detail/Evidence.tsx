import type { Approval, WarmQuery } from "@/api/queries.ts";
import { useResource } from "@/components/useResource.ts";
import { buildRecordLink, fetchItemEvents } from "@/history/itemHistory.ts";
import { describeExpected, findApprovalEvidence } from "./approvalEvidence.ts";
import { toAuditedItem } from "./auditedQuery.ts";
import css from "./Facts.module.css";

interface Props {
  query: WarmQuery;
  approval: Approval;
}

/** The audit record of an approval, and whether the approval was imported rather than decided here. */
export function Evidence({ query, approval }: Props) {
  const { data, loading } = useResource(
    (signal) => fetchItemEvents(toAuditedItem(query), signal),
    [query.lookup, approval.approvedAt],
  );
  if (data === undefined && loading) {
    // As wide as the expected text, so that its arrival moves nothing.
    return <span class={css.expected} data-text={describeExpected(query, approval)} />;
  }
  const found = data && findApprovalEvidence(data.events, approval);
  if (!found) {
    return null;
  }
  const link = <a href={buildRecordLink("PlatformConfig", found.event)}>record {found.event.RecordID}</a>;
  return found.isImported ? <>, imported with the workspace document ({link})</> : <> ({link})</>;
}
