import { useState } from "preact/hooks";
import { type Amendment, createAmendment, type NewAmendment } from "@/api/amendments.ts";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError, api } from "@/api/index.ts";
import { Badge } from "@/components/Badge.tsx";
import { Button } from "@/components/Button.tsx";
import { Field, Select, TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import type { RecordView } from "@/pages/audit/recordView.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { useIdentity } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Amendments.module.css";
import { createDraft, type Draft, validateDraft } from "./draft.ts";
import { Review } from "./Review.tsx";
import { StoredAmendment } from "./StoredAmendment.tsx";

interface Props {
  scope: string;
  categories: readonly string[];
  /** The record that the first amendment starts from; a further amendment starts empty. */
  from: RecordView | null;
}

type Stage =
  | { name: "editing"; refused?: ApiError | undefined }
  | { name: "review"; amendment: NewAmendment; busy: boolean; error: unknown }
  | { name: "made"; made: Amendment };

/** A form for an amendment, with a review of its changes before sending. */
export function AmendmentForm({ scope, categories, from: first }: Props) {
  const [from, setFrom] = useState(first);
  const [start, setStart] = useState(() => createDraft(from, categories));
  const [draft, setDraft] = useState(start);
  const [stage, setStage] = useState<Stage>({ name: "editing" });
  useUnsavedWarning(stage.name !== "made" && JSON.stringify(draft) !== JSON.stringify(start));
  // One key for each amendment: a retry after a lost reply stores it once; an edited amendment gets a new key.
  const [key, setKey] = useState(createIdempotencyKey);
  const edit = (changes: Partial<Draft>) => {
    setDraft({ ...draft, ...changes });
    setKey(createIdempotencyKey());
  };
  const send = async (amendment: NewAmendment) => {
    setStage({ name: "review", amendment, busy: true, error: undefined });
    try {
      setStage({ name: "made", made: await createAmendment(api, scope, amendment, key) });
    } catch (error) {
      const fields = error instanceof ApiError && error.errors.length > 0;
      setStage(fields ? { name: "editing", refused: error } : { name: "review", amendment, busy: false, error });
    }
  };
  const again = () => {
    const empty = createDraft(null, categories);
    setFrom(null);
    setStart(empty);
    setDraft(empty);
    setKey(createIdempotencyKey());
    setStage({ name: "editing" });
  };
  if (stage.name === "made") {
    return <StoredAmendment scope={scope} made={stage.made} onAgain={again} />;
  }
  if (stage.name === "review") {
    const { amendment, busy, error } = stage;
    return (
      <Review
        amendment={amendment}
        busy={busy}
        error={error}
        onBack={() => setStage({ name: "editing" })}
        onSend={() => void send(amendment)}
      />
    );
  }
  const review = (amendment: NewAmendment) => setStage({ name: "review", amendment, busy: false, error: undefined });
  return (
    <Form draft={draft} categories={categories} from={from} refused={stage.refused} onEdit={edit} onReview={review} />
  );
}

interface FormProps {
  draft: Draft;
  categories: readonly string[];
  from: RecordView | null;
  refused: ApiError | undefined;
  onEdit: (changes: Partial<Draft>) => void;
  onReview: (amendment: NewAmendment) => void;
}

function Form({ draft, categories, from, refused, onEdit, onReview }: FormProps) {
  const who = useIdentity();
  const [tried, setTried] = useState(refused !== undefined);
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  const { amendment, wrong, changed } = validateDraft(draft);
  const field = (name: keyof Draft) => ({
    value: draft[name],
    onInput: (text: string) => onEdit({ [name]: text }),
    error: (tried ? wrong[name] : undefined) ?? findFieldError(refused, name),
  });
  const submit = (event: Event) => {
    event.preventDefault();
    setTried(true);
    if (amendment) {
      onReview(amendment);
    } else {
      focusInvalid();
    }
  };
  return (
    <form ref={element} class={css.form} onSubmit={submit} noValidate>
      {who.principal === null && (
        <Notice kind="warn" title="This token has no user identity">
          Service tokens cannot make amendments, because each amendment records its author. Sign in as yourself.
        </Notice>
      )}
      <Panel title={from ? `Amend the state after record ${from.id}` : "Original and amended record"}>
        <div class={css.pair}>
          <Field label="Entity type" {...field("EntityType")} />
          <Field label="Entity" {...field("EntityID")} />
        </div>
        <div class={css.pair}>
          <TextArea
            label="Original record"
            {...field("OriginalRecord")}
            rows={12}
            mono
            readOnly={from !== null}
            hint={from ? `As recorded in ${from.id}; it cannot be changed` : "The recorded JSON object"}
          />
          <TextArea
            label="Amended record"
            {...field("AmendedRecord")}
            rows={12}
            mono
            hint="The same object with the correct values"
          />
        </div>
        <Changed names={changed} />
      </Panel>
      <Panel title="Why">
        <div class={css.pair}>
          <Select
            label="Reason"
            value={draft.ReasonCategory}
            options={categories.map((name) => ({ value: name, label: name }))}
            onChange={(name) => onEdit({ ReasonCategory: name })}
            error={field("ReasonCategory").error}
          />
          <TextArea
            label="Reason in words"
            {...field("ReasonText")}
            rows={3}
            hint="Explain the change for later readers"
          />
        </div>
      </Panel>
      {refused && <ErrorNotice error={refused} />}
      <div class={css.row}>
        <Button kind="primary" type="submit" disabled={who.principal === null}>
          Review
        </Button>
        {tried && !amendment && <p class={css.wrong}>Correct the marked fields above.</p>}
      </div>
    </form>
  );
}

/** Returns the service's message about a field or one of its properties. */
function findFieldError(refused: ApiError | undefined, name: string): string | undefined {
  const inside = new RegExp(`^${name}(?=[.[]|$)`);
  const found = refused?.errors.find((error) => inside.test(error.field));
  return found && `${found.field.replace(inside, "").slice(0, 80)} ${found.message}`.trim();
}

/** The names of the changed properties, which become ChangedFields. */
function Changed({ names }: { names: readonly string[] | null }) {
  return (
    <p class={css.changed} aria-live="polite">
      <span>Changed fields:</span>
      {names === null && <span class={css.soft}>unknown until both records are JSON objects</span>}
      {names?.length === 0 && <span class={css.soft}>none yet</span>}
      {names?.map((name) => (
        <Badge key={name} tone="accent">
          {name}
        </Badge>
      ))}
    </p>
  );
}
