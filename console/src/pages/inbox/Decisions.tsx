import type { PendingPage } from "@/api/auditScopes.ts";
import { api } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Pager } from "@/components/Pager.tsx";
import { useCursors } from "@/components/useCursors.ts";
import { useResource } from "@/components/useResource.ts";
import { formatQuantity } from "@/format.ts";
import { Panel } from "@/shell/Page.tsx";
import { useReader } from "./useReader.ts";
import { AmendmentRows, DraftRows, RejectedRows } from "./WaitingTables.tsx";
import { divideAmendments, divideDrafts, fetchDrafts, fetchInboxPage, type Reader, sortDrafts } from "./waiting.ts";

interface Waiting {
  queries: readonly WarmQuery[];
  pending: PendingPage;
  /** Number of the page, from 1. */
  page: number;
}

/** Drafts and pending amendments of all scopes: those that the reader can decide, then those of others. */
export function Decisions() {
  const reader = useReader();
  const cursors = useCursors();
  const { cursor, page } = cursors;
  const resource = useResource(
    async (signal): Promise<Waiting> => {
      const [queries, pending] = await Promise.all([
        fetchDrafts(reader, signal),
        fetchInboxPage(api, reader, cursor, signal),
      ]);
      return { queries, pending, page };
    },
    [cursor, JSON.stringify(reader)],
  );
  const refresh = (
    <Button kind="quiet" icon="refresh" busy={resource.loading} onClick={resource.reload}>
      Refresh
    </Button>
  );
  return (
    <Loaded resource={resource} rows={6}>
      {(waiting) => (
        <>
          <Lists waiting={waiting} reader={reader} refresh={refresh} />
          {isPartial(waiting) && (
            <Pager
              text={`Amendments, page ${waiting.page}`}
              onPrevious={cursors.toPrevious}
              onNext={cursors.toNext(waiting.pending.cursor)}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

function isPartial({ pending, page }: Waiting): boolean {
  return page > 1 || pending.cursor !== null;
}

function PageExtent({ pending, page }: Waiting) {
  return (
    <p>
      Page {page} covers {formatQuantity(pending.amendments.length, "pending amendment")}
      {pending.cursor !== null && "; the next page has newer ones"}.
    </p>
  );
}

interface ListsProps {
  waiting: Waiting;
  reader: Reader;
  refresh: preact.ComponentChildren;
}

function Lists({ waiting, reader, refresh }: ListsProps) {
  const { waiting: open, rejected } = sortDrafts(waiting.queries);
  const drafts = divideDrafts(open, reader);
  const amendments = divideAmendments(waiting.pending.amendments, reader);
  const isDecider = reader.approvesQueries || reader.approvesAmendments;
  const partial = isPartial(waiting);
  const hasOthers = drafts.others.length + amendments.others.length > 0;
  return (
    <>
      {isDecider && (
        <Panel title="Needs your decision" actions={refresh}>
          {drafts.mine.length + amendments.mine.length === 0 && (
            <Empty title={partial ? "Nothing on this page needs your decision" : "Nothing needs your decision"}>
              Drafts of queries and amendments of other people appear here until you approve or reject them.
            </Empty>
          )}
          {partial && <PageExtent {...waiting} />}
          {amendments.mine.length > 0 && (
            <AmendmentRows label="Pending amendments of all scopes" rows={amendments.mine} />
          )}
          {drafts.mine.length > 0 && <DraftRows label="Draft queries that wait for a decision" rows={drafts.mine} />}
        </Panel>
      )}
      {(hasOthers || !isDecider) && (
        <Panel title="Waits for another person" actions={!isDecider && refresh}>
          {!hasOthers && (
            <Empty title="Nothing is waiting">New drafts and amendments appear here until they are decided.</Empty>
          )}
          {amendments.others.length > 0 && (
            <AmendmentRows label="Amendments that wait for another person" rows={amendments.others} />
          )}
          {drafts.others.length > 0 && (
            <DraftRows label="Draft queries that wait for another person" rows={drafts.others} />
          )}
        </Panel>
      )}
      {rejected.length > 0 && (
        <Panel title="Rejected drafts">
          <p>Their editors can change them; a changed draft waits for a decision again.</p>
          <RejectedRows label="Rejected drafts" rows={rejected} />
        </Panel>
      )}
    </>
  );
}
