import { useState } from "preact/hooks";
import { ApiError, api, at } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Field } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { toast } from "@/components/toasts.ts";
import { go, href } from "@/router/route.ts";
import { useCan } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { warmQuery } from "../catalogQueries.ts";
import { KqlEditor } from "../KqlEditor.tsx";
import { kqlErrorOf, toldAtEditor } from "../kqlErrors.ts";
import { bodyOf, type QueryDraft } from "./draft.ts";
import { Parameters } from "./Parameters.tsx";
import css from "./QueryEditor.module.css";
import { SurfaceInput } from "./SurfaceInput.tsx";

/** A query as its author writes it. */
export function QueryForm({ start, isNew }: { start: QueryDraft; isNew: boolean }) {
  const [draft, setDraft] = useState(start);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const change = (some: Partial<QueryDraft>) => setDraft((before) => ({ ...before, ...some }));
  const failing = (field: string) => (error instanceof ApiError ? error.of(field) : undefined);
  const reads = useCan("Workspace.Catalog.Read");
  const back = isNew ? href("queries") : href("queries", [draft.lookup]);
  const save = async () => {
    setBusy(true);
    try {
      await put(draft, isNew && reads);
      toast(`“${draft.name.trim()}” is a draft now`);
      go(reads ? href("queries", [draft.lookup]) : href("queries"));
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!busy) {
      void save();
    }
  };
  return (
    <form class={css.form} onSubmit={submit} noValidate>
      <Panel title="What it is">
        <div class={css.inputs}>
          <Field
            label="Lookup"
            mono
            hint={isNew ? "letters, digits, - and _; it stays" : "it stays"}
            disabled={!isNew}
            value={draft.lookup}
            onInput={(lookup) => change({ lookup })}
            error={failing("lookup")}
          />
          <Field
            label="Name"
            value={draft.name}
            onInput={(name) => change({ name })}
            error={failing("name") ?? taken(error, "WARM_QUERY_NAME_TAKEN")}
          />
          <SurfaceInput value={draft.surface} onChange={(surface) => change({ surface })} error={failing("surface")} />
          <Field
            label="API path"
            mono
            hint="a second address, such as cooling/pressure; may be empty"
            value={draft.apiPath}
            onInput={(apiPath) => change({ apiPath })}
            error={failing("apiPath") ?? taken(error, "WARM_QUERY_PATH_TAKEN")}
          />
          <Field
            label="Seconds to keep answers"
            mono
            hint="0 to 86400; empty keeps none"
            value={draft.cacheSeconds}
            onInput={(cacheSeconds) => change({ cacheSeconds })}
            error={failing("cacheSeconds")}
          />
          <Field
            label="Description"
            value={draft.description}
            onInput={(description) => change({ description })}
            error={failing("description")}
          />
        </div>
      </Panel>
      <Panel title="What it takes">
        <Parameters parameters={draft.parameters} onChange={(parameters) => change({ parameters })} failing={failing} />
      </Panel>
      <Panel title="What it asks">
        <KqlEditor rows={14} value={draft.kql} onInput={(kql) => change({ kql })} error={kqlErrorOf(error)} />
      </Panel>
      {error !== undefined && <ErrorNotice error={error} instead={toldAtEditor(error)} />}
      <div class={css.actions}>
        <Button kind="primary" type="submit" busy={busy}>
          Save as a draft
        </Button>
        <Button onClick={() => go(back)}>Cancel</Button>
      </div>
    </form>
  );
}

/** Stores a draft; a new one does not overwrite a query that has its lookup already. */
async function put(draft: QueryDraft, isNew: boolean): Promise<void> {
  const lookup = draft.lookup.trim();
  if (lookup === "") {
    throw failed("lookup", "is needed");
  }
  if (isNew && (await warmQuery(lookup)) !== undefined) {
    throw failed("lookup", "is another query's; choose another, or edit that one");
  }
  await api.put(at`/oi-api/warm-queries/${lookup}`, bodyOf(draft));
}

function failed(field: string, message: string): ApiError {
  return new ApiError({ status: 0, code: "NOT_SENT", detail: `${field} ${message}`, errors: [{ field, message }] });
}

function taken(error: unknown, code: string): string | undefined {
  return error instanceof ApiError && error.code === code ? error.detail : undefined;
}
