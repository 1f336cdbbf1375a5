import { useState } from "preact/hooks";
import { fetchEntityChain } from "@/api/amendments.ts";
import { api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Field } from "@/components/Field.tsx";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import css from "./Amendments.module.css";
import { computeStatuses } from "./entries.ts";
import { Report } from "./Report.tsx";
import { Timeline } from "./Timeline.tsx";

interface Props {
  scope: string;
  /** Empty where none was chosen yet. */
  entity: string;
  onOpen: (entity: string) => void;
}

/** Amendments of one entity, in the order of the chain. */
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
          Enter the entity's id as it stands in its records, or open one from the other lists.
        </Empty>
      ) : (
        <Chain scope={scope} entity={entity} />
      )}
    </div>
  );
}

function Chain({ scope, entity }: { scope: string; entity: string }) {
  const resource = useResource((signal) => fetchEntityChain(api, scope, entity, signal), [scope, entity]);
  return (
    <Loaded resource={resource} rows={8}>
      {({ records, hasMore }) => (
        <>
          {hasMore && (
            <Notice kind="warn" title="This is not all of it">
              The entity has more than 1,000 amendments and decisions; the oldest are shown. Do not present this as
              complete: export the chain of amendments instead.
            </Notice>
          )}
          {records.length === 0 ? (
            <Empty title="No amendments of this entity">
              No amendment of this scope names {entity}. Ids match as written, in upper and lower case.
            </Empty>
          ) : (
            <Timeline scope={scope} records={records} standings={computeStatuses(records)} />
          )}
        </>
      )}
    </Loaded>
  );
}
