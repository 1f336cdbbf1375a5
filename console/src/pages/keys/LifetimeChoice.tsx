import { useId, useState } from "preact/hooks";
import { Field } from "@/components/Field.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { useIdentity } from "@/session/hooks.ts";
import css from "./Keys.module.css";
import { canIssue, countMinutesUntil, LIFETIMES } from "./lifetimes.ts";

interface Props {
  /** Minutes, as text. */
  value: string;
  onChange: (value: string) => void;
  /** When the longest token ends that can be made, null for no such end. */
  until: string | null;
  error: string | undefined;
}

/** Presets with what each is for, or minutes of one's own; those that are too long now cannot be chosen. */
export function LifetimeChoice({ value, onChange, until, error }: Props) {
  const name = useId();
  const now = new Date();
  const preset = LIFETIMES.some((each) => String(each.minutes) === value);
  const [own, setOwn] = useState(!preset);
  return (
    <>
      {until !== null && <LifetimeLimit until={until} left={countMinutesUntil(until, now)} />}
      <fieldset class={css.lifetimes}>
        <legend class="visually-hidden">Lifetime</legend>
        {LIFETIMES.map((each) => (
          <label key={each.minutes} class={css.choice}>
            <input
              type="radio"
              name={name}
              checked={!own && value === String(each.minutes)}
              disabled={!canIssue(each.minutes, until, now)}
              onChange={() => {
                setOwn(false);
                onChange(String(each.minutes));
              }}
            />
            <span>
              <strong>{each.title}</strong>
              <span class={css.soft}>{each.use}</span>
            </span>
          </label>
        ))}
        <label class={css.choice}>
          <input type="radio" name={name} checked={own} onChange={() => setOwn(true)} />
          <span>
            <strong>Other</strong>
            <span class={css.soft}>minutes of your own</span>
          </span>
        </label>
      </fieldset>
      {own && (
        <div class={css.minutes}>
          <Field label="Minutes" value={value} onInput={onChange} error={error} hint="1 to 43200" />
        </div>
      )}
      {!own && error && (
        <p class={css.wrong} role="alert">
          {error}
        </p>
      )}
    </>
  );
}

function LifetimeLimit({ until, left }: { until: string; left: number }) {
  const { via } = useIdentity();
  return (
    <Notice title={`No token can be made that lives longer than ${left} minutes.`}>
      <p>
        No token outlives the credential that it is made with, and yours ends at <Time at={until} />.{" "}
        {via === "jwt" && "For longer ones sign in with an API key: this page then makes tokens with the key itself."}
      </p>
    </Notice>
  );
}
