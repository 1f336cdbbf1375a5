import type { AuditEvent } from "@/api/provenance.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { isSame } from "@/components/diff.ts";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { TextDiff } from "@/components/TextDiff.tsx";
import { useResource } from "@/components/useResource.ts";
import { fetchItemEvents } from "@/history/itemHistory.ts";
import { toAuditedItem } from "./auditedQuery.ts";
import css from "./Facts.module.css";
import { ParameterDiff } from "./ParameterDiff.tsx";

/** The changes of a draft since its last approved state in the audit log. */
export function Changes({ query }: { query: WarmQuery }) {
  const resource = useResource(
    (signal) => fetchItemEvents(toAuditedItem(query), signal),
    [query.lookup, query.updatedAt],
  );
  return (
    <Loaded resource={resource} rows={2}>
      {({ events, whole }) => {
        const states = listStates(events);
        const approved = states.find((state) => state.approval !== null);
        const missing = states[0] && !isSameState(states[0], query) && <MissingEvents />;
        if (approved === undefined) {
          return (
            <>
              {missing}
              <p>
                {whole
                  ? "It was never approved before."
                  : "The newest records of the audit log contain no approval; older ones may."}
              </p>
            </>
          );
        }
        return (
          <section class={css.stack} aria-label="Changes since the last approval">
            {missing}
            <h3>Changed since {findApprover(approved)} approved it</h3>
            <Differences before={approved} after={toState(query)} />
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

/** Returns the fields that an approval covers, as the audit log records them. */
function toState({ lookup, apiPath, name, description, surface, kql, parameters, cacheSeconds }: WarmQuery): State {
  return { lookup, apiPath, name, description, surface, kql, parameters, cacheSeconds };
}

/** Tells whether a recorded state is that of the query; decisions, and fields that it lacks, do not count. */
function isSameState(recorded: State, query: WarmQuery): boolean {
  // Events that are older than a field lack it.
  return Object.entries(toState(query))
    .filter(([field]) => field in recorded)
    .every(([field, value]) => isSame(recorded[field], value));
}

/** The events of a change are appended later if the audit log cannot be written at once. */
function MissingEvents() {
  return (
    <Notice kind="warn" title="The newest change of this query is not in the audit log yet">
      An approval may be missing there, too; then the comparison begins with an earlier one.
    </Notice>
  );
}

function findApprover({ approval }: State): string {
  return typeof approval === "object" && approval !== null && "approvedBy" in approval
    ? String(approval.approvedBy)
    : "";
}

/** The text line by line, the parameters one by one, then all other fields. */
function Differences({ before, after }: { before: State; after: State }) {
  return (
    <>
      <h4>Query text</h4>
      <TextDiff before={readKql(before)} after={readKql(after)} label="Changes of the query text" />
      <h4>Parameters</h4>
      <ParameterDiff before={before.parameters} after={after.parameters} />
      <h4>Other fields</h4>
      <JsonDiff before={removeShown(before)} after={removeShown(after)} />
    </>
  );
}

function readKql({ kql }: State): string {
  return typeof kql === "string" ? kql.trimEnd() : "";
}

/** Returns a query without the decisions, and without the fields that are compared on their own. */
function removeShown({ approval: _, rejection: __, kql: ___, parameters: ____, ...rest }: State): State {
  return rest;
}
