import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { joinClasses } from "./classes.ts";
import css from "./Field.module.css";

interface Common {
  label: string;
  /** Short help, below the input. */
  hint?: string;
  /** Error message, such as `error.fieldMessage("field")` of an ApiError. */
  error?: string | undefined;
  disabled?: boolean;
  /** Hides the label from view, in toolbars; screen readers read it. */
  hideLabel?: boolean;
}

interface Described {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
  disabled?: boolean;
}

function Frame({
  label,
  hint,
  error,
  disabled,
  hideLabel,
  children,
}: Common & { children: (of: Described) => JSX.Element }) {
  const id = useId();
  const about = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ");
  const given: Described = {
    id,
    ...(about ? { "aria-describedby": about } : {}),
    ...(error ? { "aria-invalid": true } : {}),
    ...(disabled ? { disabled } : {}),
  };
  return (
    <div class={css.field}>
      <label for={id} class={hideLabel ? "visually-hidden" : css.label}>
        {label}
      </label>
      {children(given)}
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
    </div>
  );
}

type TextType = "text" | "password" | "number" | "search" | "datetime-local" | "date" | "email";

interface FieldProps extends Common {
  value: string;
  onInput: (value: string, input: HTMLInputElement) => void;
  onKeyUp?: (input: HTMLInputElement) => void;
  onBlur?: (input: HTMLInputElement) => void;
  type?: TextType;
  placeholder?: string;
  autoComplete?: string;
  mono?: boolean;
}

/** An input for one line of text. */
export function Field({
  value,
  onInput,
  onKeyUp,
  onBlur,
  type = "text",
  placeholder,
  autoComplete = "off",
  mono,
  ...common
}: FieldProps) {
  return (
    <Frame {...common}>
      {(of) => (
        <input
          {...of}
          class={joinClasses(css.control, mono && css.mono)}
          {...({ type } as { type: "text" })}
          value={value}
          placeholder={placeholder}
          autocomplete={autoComplete}
          spellcheck={false}
          onInput={({ currentTarget: input }) => onInput(input.value, input)}
          onKeyUp={onKeyUp && ((event) => onKeyUp(event.currentTarget))}
          onBlur={onBlur && ((event) => onBlur(event.currentTarget))}
        />
      )}
    </Frame>
  );
}

interface TextAreaProps extends Common {
  value: string;
  onInput: (value: string) => void;
  /** Shows the text without a way to change it. */
  readOnly?: boolean;
  rows?: number;
  mono?: boolean;
}

/** An input for several lines of text. */
export function TextArea({ value, onInput, rows = 4, mono, readOnly = false, ...common }: TextAreaProps) {
  return (
    <Frame {...common}>
      {(of) => (
        <textarea
          {...of}
          class={joinClasses(css.control, css.area, mono && css.mono)}
          rows={rows}
          value={value}
          readOnly={readOnly}
          spellcheck={false}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Frame>
  );
}

interface SelectProps<V extends string> extends Common {
  value: V;
  options: readonly { value: V; label: string }[];
  onChange: (value: V) => void;
}

/** A choice of one value. */
export function Select<V extends string>({ value, options, onChange, ...common }: SelectProps<V>) {
  return (
    <Frame {...common}>
      {(of) => (
        <select
          {...of}
          class={joinClasses(css.control, css.select)}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value as V)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value} selected={option.value === value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Frame>
  );
}

interface CheckboxProps {
  label: ComponentChildren;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

/** A checkbox with its label. */
export function Checkbox({ label, checked, onChange, disabled = false }: CheckboxProps) {
  return (
    <label class={css.check}>
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
