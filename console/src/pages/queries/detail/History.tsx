import type { WarmQuery } from "@/api/queries.ts";
import { Empty } from "@/components/Empty.tsx";
import { Time } from "@/components/Time.tsx";
import { ItemHistory } from "@/history/ItemHistory.tsx";
import { useHasRights } from "@/session/hooks.ts";
import { toAuditedItem } from "./auditedQuery.ts";

/** The history of a query: its audit events, newest first, if the token can read them. */
export function History({ query }: { query: WarmQuery }) {
  return useHasRights("Workspace.Provenance.Read") ? (
    <ItemHistory item={toAuditedItem(query)} version={[query.updatedAt, query.approval?.approvedAt]} />
  ) : (
    <KnownFacts query={query} />
  );
}

function KnownFacts({ query }: { query: WarmQuery }) {
  return (
    <Empty title="Your token cannot read the audit log">
      The query was created <Time at={query.createdAt} />, edited last by {query.editedBy} <Time at={query.updatedAt} />
      . The full history needs Workspace.Provenance.Read.
    </Empty>
  );
}
