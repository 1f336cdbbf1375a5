import { useState } from "preact/hooks";
import { describeOffset, useZone } from "@/shell/timeZone.ts";
import { fromDateField, INCOMPLETE, INCOMPLETE_ERROR, toDateField } from "./dateFields.ts";
import { Field } from "./Field.tsx";

interface Props {
  label: string;
  /** The instant in UTC, RFC 3339; empty if none is entered, INCOMPLETE for an unusable date. */
  value: string;
  onInput: (instant: string) => void;
  hint?: string;
  error?: string | undefined;
}

/** An input for an instant, in the zone of the page, which its label names. */
export function DateField({ label, value, onInput, hint, error }: Props) {
  const zone = useZone();
  const [typed, setTyped] = useState("");
  // The typed text stays as it is, because a date that is still incomplete can convert to another text.
  const shown = fromDateField(typed, zone) === value ? typed : toDateField(value, zone);
  const at = Number.isNaN(Date.parse(value)) ? Date.now() : value;
  const read = (input: HTMLInputElement) => {
    setTyped(input.value);
    onInput(convert(input));
  };
  const convert = (input: HTMLInputElement) =>
    input.validity.badInput ? INCOMPLETE : fromDateField(input.value, zone);
  // Browsers send no input event while an empty date is filled in or an incomplete one is cleared.
  const check = (input: HTMLInputElement) => {
    if ((convert(input) === INCOMPLETE) !== (value === INCOMPLETE)) read(input);
  };
  return (
    <Field
      label={`${label} (${describeOffset(zone, new Date(at))})`}
      type="datetime-local"
      value={shown}
      {...(hint === undefined ? {} : { hint })}
      error={value === INCOMPLETE ? INCOMPLETE_ERROR : error}
      onInput={(_, input) => read(input)}
      onKeyUp={(input) => value === INCOMPLETE && check(input)}
      onBlur={check}
    />
  );
}
