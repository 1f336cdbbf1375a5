import { useState } from "preact/hooks";
import type { ItemForm } from "@/administration/useItemForm.ts";
import type { ConnectionItem, SignalType } from "@/api/connections.ts";
import { Button } from "@/components/Button.tsx";
import { Field, Select } from "@/components/Field.tsx";
import { formatCount } from "@/format.ts";
import type { ConnectionDraft } from "./connectionRules.ts";
import { SignalProposals } from "./SignalProposals.tsx";
import css from "./Signals.module.css";
import { isNumeric, MAX_SIGNALS, NEW_SIGNAL, SIGNAL_TYPES, type SignalDraft } from "./signalDrafts.ts";

interface Props {
  form: ItemForm<ConnectionItem, ConnectionDraft>;
}

const SHOWN_AT_FIRST = 50;
const TYPES = SIGNAL_TYPES.map((value) => ({ value, label: value }));
const HEADS = ["Name", "Pointer", "Type", "Unit", "Lowest", "Highest", "Description"];

/** The declared signals of a connection: add, change, remove, and propose from messages. */
export function SignalFields({ form }: Props) {
  const { signals } = form.draft;
  const [all, setAll] = useState(false);
  const [proposing, setProposing] = useState(false);
  const set = (changed: readonly SignalDraft[]) => form.change({ signals: changed });
  const shown = all ? signals : signals.slice(0, SHOWN_AT_FIRST);
  return (
    <section class={css.signals} aria-label="Signals">
      <h3>Signals</h3>
      <p class={css.about}>
        Signals describe the fields of the messages: position, type, unit and expected range. Charts, API documentation
        and AI assistants use them. A message with a value of another type is stored and counted as a mismatch.
      </p>
      {shown.length > 0 && (
        <div class={css.heads} aria-hidden="true">
          {HEADS.map((head) => (
            <span key={head}>{head}</span>
          ))}
        </div>
      )}
      <ol class={css.rows}>
        {shown.map((signal, index) => (
          <Row
            // A signal has no other identity while its name is edited.
            key={index}
            signal={signal}
            label={`Signal ${index + 1}`}
            failing={(member) => form.message(`signals[${index}].${member}`)}
            onChange={(some) => set(signals.map((each, at) => (at === index ? { ...each, ...some } : each)))}
            onRemove={() => set(signals.filter((_, at) => at !== index))}
          />
        ))}
      </ol>
      <div class={css.actions}>
        {shown.length < signals.length && (
          <Button onClick={() => setAll(true)}>Show all {formatCount(signals.length)} signals</Button>
        )}
        <Button
          icon="plus"
          disabled={signals.length >= MAX_SIGNALS}
          onClick={() => {
            setAll(true);
            set([...signals, NEW_SIGNAL]);
          }}
        >
          Add a signal
        </Button>
        {!form.isNew && <Button onClick={() => setProposing(true)}>Propose from messages</Button>}
        {form.isNew && (
          <span class={css.about}>
            After you add the connection, the console can propose signals from its messages.
          </span>
        )}
      </div>
      {proposing && (
        <SignalProposals
          lookup={form.draft.lookup}
          declared={signals}
          onAdd={(added) => {
            set([...signals, ...added]);
            setProposing(false);
          }}
          onClose={() => setProposing(false)}
        />
      )}
    </section>
  );
}

interface RowProps {
  signal: SignalDraft;
  label: string;
  failing: (member: string) => string | undefined;
  onChange: (some: Partial<SignalDraft>) => void;
  onRemove: () => void;
}

function Row({ signal, label, failing, onChange, onRemove }: RowProps) {
  const text = (member: Exclude<keyof SignalDraft, "type">, title: string, mono = false, disabled = false) => (
    <Field
      label={`${label}, ${title}`}
      hideLabel
      mono={mono}
      disabled={disabled}
      placeholder={title}
      value={disabled ? "" : signal[member]}
      onInput={(value) => onChange({ [member]: value })}
      error={failing(member)}
    />
  );
  const numeric = isNumeric(signal.type);
  return (
    <li class={css.row}>
      {text("name", "name")}
      {text("pointer", "pointer", true)}
      <Select<SignalType>
        label={`${label}, type`}
        hideLabel
        value={signal.type}
        options={TYPES}
        onChange={(type) => onChange({ type })}
        error={failing("type")}
      />
      {text("unit", "unit")}
      {text("min", "lowest", false, !numeric)}
      {text("max", "highest", false, !numeric)}
      {text("description", "description")}
      <Button kind="quiet" icon="close" label={`Remove ${label.toLowerCase()}`} onClick={onRemove} />
    </li>
  );
}
