import { Button } from "@/components/Button.tsx";
import { Field, Select, TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { useWork } from "@/components/useWork.ts";
import css from "./Signing.module.css";
import { formatSignedTime } from "./signedTime.ts";
import type { Signing } from "./useSigning.ts";

interface Props {
  signing: Signing;
  /** Whether the decision is being sent. */
  busy: boolean;
  /** Called on Enter in the field of the key: signs, as the button of the dialog does. */
  onSign: () => void;
}

/** The fields of a signature: meaning, statement, and the sign-in; nothing if no signature is required. */
export function SigningFields({ signing, busy, onSign }: Props) {
  if (!signing.required) {
    return null;
  }
  const { who, meanings, meaning, setMeaning, statement, setStatement, statementError } = signing;
  return (
    <section class={css.signing} aria-label="Signature">
      <h3>Signature</h3>
      <p>
        You sign as <b>{who.name || who.principal}</b> ({who.principal}). Your name, the time and the meaning become a
        permanent part of the record.
      </p>
      {signing.verb === "reject" ? (
        <p>
          Meaning: <b>{meaning}</b>
        </p>
      ) : (
        <Select
          label="Meaning"
          value={meaning}
          options={meanings.map((name) => ({ value: name, label: name }))}
          onChange={setMeaning}
          disabled={busy}
        />
      )}
      <TextArea
        label="Statement"
        value={statement}
        onInput={setStatement}
        error={statementError}
        rows={2}
        hint="Optional; stored with the signature"
        disabled={busy}
      />
      <SignInFields signing={signing} busy={busy} onSign={onSign} />
    </section>
  );
}

function SignInFields({ signing, busy, onSign }: Props) {
  const { recent, mustSignIn, key, setKey, keyError, entra } = signing;
  const leaving = useWork();
  if (recent) {
    return <Notice kind="good" title={`You signed in again at ${formatSignedTime(recent.at)}`} />;
  }
  if (!mustSignIn) {
    return null;
  }
  return (
    <>
      <p>Sign in again, because a signature needs a recent sign-in. What you typed stays here.</p>
      {entra && (
        <div>
          <Button disabled={busy} busy={leaving.busy} onClick={() => void leaving.run(signing.leaveForEntra)}>
            Sign in again with Entra ID
          </Button>
        </div>
      )}
      {leaving.error !== undefined && <ErrorNotice error={leaving.error} />}
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          onSign();
        }}
      >
        <Field
          label={entra ? "Or your API key" : "Your API key"}
          type="password"
          value={key}
          onInput={setKey}
          error={keyError}
          hint="Used for this sign-in only, and not stored"
          disabled={busy}
          mono
        />
      </form>
    </>
  );
}
