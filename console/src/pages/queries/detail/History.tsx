import type { AuditEvent } from "@/api/provenance.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Status, type Tone } from "@/components/Badge.tsx";
import { Empty } from "@/components/Empty.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import { useHasRights } from "@/session/hooks.ts";
import css from "./Facts.module.css";
import { buildRecordLink, fetchHistory } from "./queryHistory.ts";

/** The history of a query: its audit events, newest first, if the token can read them. */
export function History({ query }: { query: WarmQuery }) {
  return useHasRights("Workspace.Provenance.Read") ? <Events query={query} /> : <KnownFacts query={query} />;
}

function KnownFacts({ query }: { query: WarmQuery }) {
  return (
    <Empty title="Your token cannot read the audit log">
      The query was created <Time at={query.createdAt} />, edited last by {query.editedBy} <Time at={query.updatedAt} />
      . The full history needs Workspace.Provenance.Read.
    </Empty>
  );
}

function Events({ query }: { query: WarmQuery }) {
  const resource = useResource(
    (signal) => fetchHistory(query.lookup, signal),
    [query.lookup, query.updatedAt, query.approval?.approvedAt],
  );
  return (
    <Loaded resource={resource}>
      {({ events, whole }) =>
        events.length === 0 ? (
          <Empty title="No records">
            The workspace has no audit log, or its newest records belong to other queries.
          </Empty>
        ) : (
          <>
            <ol class={css.events}>
              {events.map((event) => (
                <Event key={event.RecordID} event={event} />
              ))}
            </ol>
            {!whole && <p class={css.record}>The audit log has older records.</p>}
          </>
        )
      }
    </Loaded>
  );
}

const TONES: Record<string, Tone> = { Approved: "good", Removed: "bad", Created: "accent" };

function Event({ event }: { event: AuditEvent }) {
  const verb = event.ActionType.split(".").at(-1) ?? event.ActionType;
  return (
    <li class={css.event}>
      <div class={css.what}>
        <Status tone={TONES[verb] ?? "neutral"}>{verb}</Status>
        <span>{event.UserID}</span>
        <Time at={event.Timestamp} />
        <a class={css.record} href={buildRecordLink(event)}>
          record {event.RecordID}
        </a>
      </div>
      {event.BeforeState && event.AfterState && <JsonDiff before={event.BeforeState} after={event.AfterState} />}
    </li>
  );
}
