import { useState } from "preact/hooks";
import type { ApiError } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { Field } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import { EntraButton } from "./EntraButton.tsx";
import { fetchEntraConfig } from "./entra.ts";
import { session } from "./index.ts";
import css from "./SignIn.module.css";

interface Props {
  /** Whether a sign-in is in progress. */
  busy: boolean;
  /** Why the last session ended or failed. */
  reason: ApiError | undefined;
}

/** The sign-in page. */
export function SignIn({ busy, reason }: Props) {
  const [text, setText] = useState("");
  const entra = useResource(fetchEntraConfig, []).data;
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
    <main class={css.page}>
      <form class={css.card} onSubmit={submit} noValidate>
        <h1>Workspace console</h1>
        <p class={css.lead}>Sign in with {entra && "your organisation's account, "}an API key, or a token.</p>
        {reason && <ErrorNotice error={reason} />}
        {entra && <EntraButton config={entra} />}
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
        <p class={css.help}>
          On your own machine, open the link from <code>make run</code> , or create a new one with{" "}
          <code>python -m local.sign_in</code>.
        </p>
      </form>
    </main>
  );
}
