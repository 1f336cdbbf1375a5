import { useId, useState } from "preact/hooks";
import { Field } from "@/components/Field.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Time } from "@/components/Time.tsx";
import { formatQuantity } from "@/format.ts";
import { useIdentity } from "@/session/hooks.ts";
import { session } from "@/session/index.ts";
import css from "./Keys.module.css";
import { canIssue, countMinutesUntil, LIFETIMES } from "./lifetimes.ts";

interface Props {
  /** Minutes, as text. */
  value: string;
  onChange: (value: string) => void;
  /** Latest possible end of a token, null without a limit. */
  until: string | null;
  error: string | undefined;
}

/** Presets with their purpose, or a number of minutes; disables lifetimes that are too long. */
export function LifetimeChoice({ value, onChange, until, error }: Props) {
  const name = useId();
  const now = session.now();
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
            <span class={css.soft}>enter minutes</span>
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
    <Notice title={`A token can be valid for at most ${formatQuantity(left, "minute")}.`}>
      <p>
        A token cannot be valid longer than the credential that you signed in with. Yours ends at <Time at={until} />.{" "}
        {via === "jwt" && "Sign in with an API key for a longer one; this page then issues tokens with the key."}
      </p>
    </Notice>
  );
}
