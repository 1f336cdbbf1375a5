import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { Field } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { EntraButton } from "./EntraButton.tsx";
import { session } from "./index.ts";
import css from "./SignIn.module.css";
import { useEntraConfig } from "./useEntraConfig.ts";

interface Props {
  /** Whether a sign-in is in progress. */
  busy: boolean;
  /** Why the last session ended or failed. */
  reason: ApiError | undefined;
}

interface FormProps extends Props {
  /** Whether an ended session waits on this page. */
  again?: boolean;
  /** Content below the form. */
  children: ComponentChildren;
}

/** The sign-in page, which also says what the product is. */
export function SignIn(props: Props) {
  return (
    <main class={css.page}>
      <div class={css.card}>
        <h1>Workspace console</h1>
        <p class={css.lead}>
          Your plant's telemetry, live and through approved queries, with an audit log that reveals changes to its
          records.
        </p>
        <SignInForm {...props}>
          <p class={css.help}>
            No key yet? Ask an administrator of the workspace. On your own machine, open the link from{" "}
            <code>make run</code>, or create a new one with <code>python -m local.sign_in</code>.
          </p>
        </SignInForm>
      </div>
    </main>
  );
}

/** The ways to sign in: the organisation's account, an API key, a token. */
export function SignInForm({ busy, reason, again = false, children }: FormProps) {
  const [text, setText] = useState("");
  const entra = useEntraConfig();
  const [missing, setMissing] = useState<string>();
  const submit = (event: Event) => {
    event.preventDefault();
    const credential = text.trim();
    setMissing(credential === "" ? "Paste an API key or a token." : undefined);
    if (credential !== "") {
      setText("");
      void session.signInWithCredential(credential);
    }
  };
  return (
    <form class={css.form} onSubmit={submit} noValidate>
      <p class={css.lead}>Sign in with {entra && "your organisation's account, "}an API key or a token.</p>
      {reason && <ErrorNotice error={reason} />}
      {entra && <EntraButton config={entra} inNewTab={again} />}
      <Field
        label="API key or token"
        type="password"
        value={text}
        onInput={setText}
        error={missing}
        hint="It is used only in this tab and sent only to this service."
        autoComplete="off"
        mono
      />
      <Button kind={entra ? "plain" : "primary"} type="submit" busy={busy} wide>
        Sign in
      </Button>
      {children}
    </form>
  );
}
