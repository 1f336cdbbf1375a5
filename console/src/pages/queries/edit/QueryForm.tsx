import { useLayoutEffect, useState } from "preact/hooks";
import { Attempts } from "@/api/attempts.ts";
import { announceDecision } from "@/api/decisions.ts";
import { ApiError } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Field } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import { useTrial } from "../detail/DraftTrial.tsx";
import { KqlEditor } from "../KqlEditor.tsx";
import { summarizeError, toKqlError } from "../kqlErrors.ts";
import { type QueryDraft, toDraft, toTrialQuery } from "./draft.ts";
import { FormTrial } from "./FormTrial.tsx";
import { Overwrite } from "./Overwrite.tsx";
import { Parameters } from "./Parameters.tsx";
import css from "./QueryEditor.module.css";
import { SurfaceInput } from "./SurfaceInput.tsx";
import { type EditConflict, findMissingFields, hasChanges, storeChange, storeNew } from "./saving.ts";

interface Props {
  /** The initial values. */
  begin: QueryDraft;
  /** The stored query; null for a new one. */
  stands: WarmQuery | null;
}

/** The form of a query. */
export function QueryForm({ begin, stands }: Props) {
  const [isNew, setIsNew] = useState(stands === null);
  const [start, setStart] = useState(begin);
  const [seen, setSeen] = useState(stands);
  const [draft, setDraft] = useState(begin);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [overtaken, setOvertaken] = useState<EditConflict>();
  const [attempts] = useState(() => new Attempts());
  /** The stored draft; the user may have typed more before the reply arrived. */
  const [saved, setSaved] = useState<QueryDraft>();
  useUnsavedWarning(hasChanges(draft, saved ?? start));
  const change = (some: Partial<QueryDraft>) => setDraft((before) => ({ ...before, ...some }));
  const [missing, setMissing] = useState<ReturnType<typeof findMissingFields>>({});
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  const failing = (field: string) =>
    missing[field as keyof QueryDraft] ?? (error instanceof ApiError ? error.fieldMessage(field) : undefined);
  const reads = useHasRights("Workspace.Catalog.Read");
  const trial = useTrial(toTrialQuery(draft));
  const tries = useHasRights("Workspace.WarmQuery.AdHoc", "Workspace.Catalog.Read");
  const kqlError = missing.kql ? { message: missing.kql, place: undefined } : toKqlError(error);
  const back = isNew ? buildHref("queries") : buildHref("queries", [draft.lookup]);
  // Before the browser paints, because a reader who sees the message may already open another page.
  useLayoutEffect(() => {
    if (saved) {
      navigate(reads ? buildHref("queries", [draft.lookup.trim()]) : buildHref("queries"));
    }
  }, [saved]);
  const save = async (over: WarmQuery | null) => {
    setBusy(true);
    setOvertaken(undefined);
    setError(undefined);
    try {
      const result = isNew ? await storeNew(draft, attempts) : await storeChange(draft, over, attempts);
      setBusy(false);
      if ("now" in result) {
        setOvertaken(result);
        return;
      }
      showToast("Saved as draft; awaiting approval");
      announceDecision();
      // The author may decline to leave, and then saves what was typed meanwhile.
      setIsNew(false);
      setSeen(result.stored);
      setSaved(draft);
    } catch (failure) {
      setError(failure);
      setBusy(false);
      focusInvalid();
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const empty = findMissingFields(draft, isNew);
    setMissing(empty);
    setError(undefined);
    if (Object.keys(empty).length > 0) {
      focusInvalid();
    } else if (!busy) {
      void save(seen);
    }
  };
  const take = (theirs: WarmQuery) => {
    setOvertaken(undefined);
    setSeen(theirs);
    setSaved(undefined);
    setStart(toDraft(theirs));
    setDraft(toDraft(theirs));
  };
  return (
    <>
      <form ref={element} class={css.form} onSubmit={submit} noValidate>
        <Panel title="Details">
          <div class={css.inputs}>
            <Field
              label="ID"
              mono
              hint={
                isNew
                  ? "Used in addresses and in the API (lookup). Letters, digits, - and _ are allowed. It cannot be changed later"
                  : "Used in addresses and in the API (lookup). It cannot be changed"
              }
              disabled={!isNew || busy}
              value={draft.lookup}
              onInput={(lookup) => change({ lookup })}
              error={failing("lookup")}
            />
            <Field
              label="Name"
              value={draft.name}
              onInput={(name) => change({ name })}
              error={failing("name") ?? toLookupError(error, "WARM_QUERY_NAME_TAKEN")}
            />
            <SurfaceInput
              value={draft.surface}
              onChange={(surface) => change({ surface })}
              error={failing("surface")}
            />
            <Field
              label="API path"
              mono
              hint="optional second address, such as cooling/pressure"
              value={draft.apiPath}
              onInput={(apiPath) => change({ apiPath })}
              error={failing("apiPath") ?? toLookupError(error, "WARM_QUERY_PATH_TAKEN")}
            />
            <Field
              label="Cache results for (seconds)"
              mono
              hint="0 to 86400; empty disables caching"
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
        <Panel title="Parameters">
          <Parameters
            parameters={draft.parameters}
            onChange={(parameters) => change({ parameters })}
            failing={failing}
          />
        </Panel>
        <Panel title="Query text">
          <KqlEditor
            rows={14}
            value={draft.kql}
            onInput={(kql) => change({ kql })}
            error={kqlError}
            parameters={draft.parameters}
            {...(tries && draft.surface !== "" ? { onRun: trial.start } : {})}
          />
        </Panel>
        {overtaken && (
          <Overwrite
            draft={draft}
            overtaken={overtaken}
            onClose={() => setOvertaken(undefined)}
            onOverwrite={() => void save(overtaken.now)}
            onTake={take}
          />
        )}
        {error !== undefined && <ErrorNotice error={error} instead={summarizeError(error)} />}
        <div class={css.actions}>
          <Button kind="primary" type="submit" busy={busy}>
            Save as a draft
          </Button>
          <Button onClick={() => navigate(back)}>Cancel</Button>
        </div>
      </form>
      {tries && <FormTrial trial={trial} />}
    </>
  );
}

function toLookupError(error: unknown, code: string): string | undefined {
  return error instanceof ApiError && error.code === code ? error.detail : undefined;
}
