import type { AuditEvent } from "@/api/provenance.ts";
import { Status, type Tone } from "@/components/Badge.tsx";
import { Empty } from "@/components/Empty.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Time } from "@/components/Time.tsx";
import { useResource } from "@/components/useResource.ts";
import css from "./ItemHistory.module.css";
import { type AuditedItem, buildRecordLink, fetchItemEvents } from "./itemHistory.ts";

interface Props {
  item: AuditedItem;
  /** Values that change with the item, to read the events again. */
  version: readonly unknown[];
}

/** The audit events of an item, newest first; needs Workspace.Provenance.Read. */
export function ItemHistory({ item, version }: Props) {
  const resource = useResource((signal) => fetchItemEvents(item, signal), [item.entityId, ...version]);
  return (
    <Loaded resource={resource}>
      {({ events, whole }) =>
        events.length === 0 ? (
          <Empty title="No records">The workspace has no audit log, or its newest records belong to other items.</Empty>
        ) : (
          <>
            <ol class={css.events}>
              {events.map((event) => (
                <Event key={event.RecordID} item={item} event={event} />
              ))}
            </ol>
            {!whole && <p class={css.record}>The audit log has older records.</p>}
          </>
        )
      }
    </Loaded>
  );
}

const TONES: Record<string, Tone> = { Approved: "good", Rejected: "bad", Removed: "bad", Created: "accent" };

function Event({ item, event }: { item: AuditedItem; event: AuditEvent }) {
  const verb = event.ActionType.split(".").at(-1) ?? event.ActionType;
  return (
    <li class={css.event}>
      <div class={css.what}>
        <Status tone={TONES[verb] ?? "neutral"}>
          {item.entityTypes.length > 1 && `${event.EntityType}: `}
          {verb}
        </Status>
        <span>{event.UserID}</span>
        <Time at={event.Timestamp} />
        <a class={css.record} href={buildRecordLink(item.target, event)}>
          record {event.RecordID}
        </a>
      </div>
      {event.BeforeState && event.AfterState && <JsonDiff before={event.BeforeState} after={event.AfterState} />}
    </li>
  );
}
