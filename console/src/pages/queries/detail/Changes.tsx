import type { AuditEvent } from "@/api/provenance.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { useResource } from "@/components/useResource.ts";
import css from "./Facts.module.css";
import { fetchHistory } from "./queryHistory.ts";

/** The changes of a draft since the last approved text in the audit log. */
export function Changes({ query }: { query: WarmQuery }) {
  const resource = useResource((signal) => fetchHistory(query.lookup, signal), [query.lookup, query.updatedAt]);
  return (
    <Loaded resource={resource} rows={2}>
      {({ events, whole }) => {
        const states = listStates(events);
        const newest = states[0];
        const approved = states.find((state) => state.approval !== null);
        if (approved === undefined || newest === undefined) {
          return <p>{whole ? "It was never approved before." : "The audit log has earlier approvals."}</p>;
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

/** Returns the query's states since its creation, newest first; a removed query with the same lookup is ignored. */
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

/** Returns a query without its approval. */
function removeApproval({ approval: _, ...rest }: State): State {
  return rest;
}
