import { useEffect, useRef } from "preact/hooks";
import type { Identity } from "@/api/keys.ts";
import type { ApiError } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { confirmSignOut } from "@/router/unsaved.ts";
import { session } from "./index.ts";
import css from "./SignIn.module.css";
import { SignInForm } from "./SignIn.tsx";

interface Props {
  busy: boolean;
  reason: ApiError | undefined;
  /** The user of the ended session. */
  who: Identity;
}

/** The sign-in after the end of a session, above the hidden page with everything typed. */
export function SignInAgain({ busy, reason, who }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    // A modal dialog, because the page below may have an open dialog itself.
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={css.again}
      aria-labelledby="sign-in-again"
      onCancel={(event) => event.preventDefault()}
      onKeyDown={(event) => event.key === "Escape" && event.preventDefault()}
    >
      <div class={css.page}>
        <div class={css.card}>
          <h1 id="sign-in-again">Sign in again</h1>
          <p class={css.lead}>
            What you typed is still on the page. Sign in as <b>{who.name || who.principal}</b> to continue. Another user
            starts with an empty console.
          </p>
          <SignInForm busy={busy} reason={reason} again>
            <Button kind="quiet" wide onClick={() => confirmSignOut() && session.signOut()}>
              Sign out and close the page
            </Button>
          </SignInForm>
        </div>
      </div>
    </dialog>
  );
}
