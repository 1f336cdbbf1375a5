import { useState } from "preact/hooks";
import { fetchEntityChain, queryAmendments } from "@/api/amendments.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Field } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import css from "./Amendments.module.css";
import { findLastSequence, findUndecided } from "./entries.ts";
import { Report } from "./Report.tsx";
import { Timeline } from "./Timeline.tsx";

interface Props {
  scope: string;
  /** Empty before a choice. */
  entity: string;
  onOpen: (entity: string) => void;
}

/** The amendments of one entity, in the order of the chain. */
export function Entity({ scope, entity, onOpen }: Props) {
  const [text, setText] = useState(entity);
  return (
    <div class={css.list}>
      <form
        class={css.entity}
        onSubmit={(event) => {
          event.preventDefault();
          onOpen(text);
        }}
      >
        <Field label="Entity" value={text} onInput={setText} placeholder="B-1" />
        <Button type="submit" disabled={text === ""}>
          Show
        </Button>
        {entity !== "" && <Report scope={scope} entity={entity} />}
      </form>
      {entity === "" ? (
        <Empty title="Which entity?">
          Enter the ID of the entity as in its records, or open an entity from the other tabs.
        </Empty>
      ) : (
        <Chain scope={scope} entity={entity} />
      )}
    </div>
  );
}

function Chain({ scope, entity }: { scope: string; entity: string }) {
  const resource = useResource((signal) => loadTimeline(scope, entity, signal), [scope, entity]);
  return (
    <Loaded resource={resource} rows={8}>
      {({ records, hasMore, pending }) => (
        <>
          {hasMore && (
            <Notice kind="warn" title="This list is incomplete">
              The entity has more than 1,000 amendments and decisions; only the oldest are shown. An amendment shows
              “decided”, without the outcome, if its decision is altered or was not loaded. Export the chain of
              amendments for a complete list.
            </Notice>
          )}
          {records.length === 0 ? (
            <Empty title="No amendments of this entity">
              No amendment of this scope names {entity}. IDs are case-sensitive.
            </Empty>
          ) : (
            <Timeline scope={scope} records={records} pending={pending} />
          )}
        </>
      )}
    </Loaded>
  );
}

const MOST = 1000;

/** Loads the oldest records of an entity, and the ids of its pending amendments; newer records possibly decide some. */
async function loadTimeline(scope: string, entityId: string, signal: AbortSignal) {
  const { records, hasMore } = await fetchEntityChain(api, scope, entityId, signal);
  if (!hasMore) {
    return { records, hasMore, pending: findUndecided(records) };
  }
  const toSequence = findLastSequence(records.map(({ RecordID }) => RecordID));
  const waiting = await queryAmendments(api, scope, { status: "pending", entityId, toSequence, limit: MOST }, signal);
  return { records, hasMore, pending: new Set(waiting.records.map(({ RecordID }) => RecordID)) };
}
