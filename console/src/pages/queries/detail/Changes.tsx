import type { AuditEvent } from "@/api/provenance.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import css from "./Facts.module.css";
import { fetchHistory } from "./queryHistory.ts";

/** What a draft changes of the text that was approved last, as the audit log has it. */
export function Changes({ query }: { query: WarmQuery }) {
  const resource = useResource((signal) => fetchHistory(query.lookup, signal), [query.lookup, query.updatedAt]);
  return (
    <Loaded resource={resource} rows={2}>
      {({ events, whole }) => {
        const states = listStates(events);
        const newest = states[0];
        const approved = states.find((state) => state.approval !== null);
        if (approved === undefined || newest === undefined) {
          return <p>{whole ? "It was never approved before." : "Earlier approvals stand in the audit log."}</p>;
        }
        return (
          <section class={css.stack} aria-label="Changes since the last approval">
            <h3>Changed since {findApprover(approved)} approved it</h3>
            <JsonDiff before={removeApproval(approved)} after={removeApproval(newest)} />
          </section>
        );
      }}
    </Loaded>
  );
}

type State = Record<string, unknown>;

/** The query's states since it was made, newest first; a removed one of the same lookup was another query. */
function listStates(events: readonly AuditEvent[]): State[] {
  const removed = events.findIndex((event) => event.AfterState === undefined);
  const life = removed < 0 ? events : events.slice(0, removed);
  return life.flatMap((event) => (event.AfterState ? [event.AfterState] : []));
}

function findApprover({ approval }: State): string {
  return typeof approval === "object" && approval !== null && "approvedBy" in approval
    ? String(approval.approvedBy)
    : "";
}

/** What an approver judges: all but the approval itself. */
function removeApproval({ approval: _, ...rest }: State): State {
  return rest;
}
