import { useId, useState } from "preact/hooks";
import css from "./ChoiceList.module.css";
import { Checkbox, Field } from "./Field.tsx";
import { VisibleText } from "./VisibleText.tsx";

interface Option {
  value: string;
  label: string;
  /** Further words, after the label. */
  note?: string;
}

interface Props {
  label: string;
  options: readonly Option[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  hint?: string;
  error?: string | undefined;
  /** Shown if there are no options. */
  empty?: string;
}

const MANY = 12;

/** A choice of several values by checkboxes; long lists have a filter. */
export function ChoiceList({ label, options, chosen, onChange, hint, error, empty }: Props) {
  const id = useId();
  const [filter, setFilter] = useState("");
  const words = filter.trim().toLowerCase();
  const shown = options.filter((each) => `${each.label} ${each.value}`.toLowerCase().includes(words));
  const about = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ");
  const toggle = (value: string, checked: boolean) =>
    onChange(checked ? [...chosen, value] : chosen.filter((each) => each !== value));
  return (
    <fieldset class={css.list} {...(about ? { "aria-describedby": about } : {})}>
      <legend>
        {label}{" "}
        <small>
          {chosen.length} of {options.length} chosen
        </small>
      </legend>
      {options.length > MANY && (
        <Field
          label={`Filter: ${label}`}
          hideLabel
          type="search"
          placeholder="Filter"
          value={filter}
          onInput={setFilter}
        />
      )}
      {options.length === 0 && empty && <p class={css.hint}>{empty}</p>}
      <div class={css.options}>
        {shown.map(({ value, label: text, note }) => (
          <Checkbox
            key={value}
            checked={chosen.includes(value)}
            onChange={(checked) => toggle(value, checked)}
            label={
              <>
                <VisibleText text={text} /> {note && <small>{note}</small>}
              </>
            }
          />
        ))}
      </div>
      {error && (
        <p id={`${id}-error`} class={css.error} role="alert">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} class={css.hint}>
          {hint}
        </p>
      )}
    </fieldset>
  );
}
