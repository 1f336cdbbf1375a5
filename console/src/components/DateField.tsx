import { useState } from "preact/hooks";
import { describeOffset, useZone } from "@/shell/timeZone.ts";
import { fromDateField, toDateField } from "./dateFields.ts";
import { Field } from "./Field.tsx";

interface Props {
  label: string;
  /** The instant in UTC, RFC 3339; empty if none is entered. */
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
  const shown = (fromDateField(typed, zone) ?? "") === value ? typed : toDateField(value, zone);
  return (
    <Field
      label={`${label} (${describeOffset(zone, new Date(value || Date.now()))})`}
      type="datetime-local"
      value={shown}
      {...(hint === undefined ? {} : { hint })}
      error={error}
      onInput={(text) => {
        setTyped(text);
        onInput(fromDateField(text, zone) ?? "");
      }}
    />
  );
}
