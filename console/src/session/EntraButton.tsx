import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort } from "@/api/problem.ts";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { type EntraConfig, goToEntra } from "./entra.ts";
import { signInInNewTab } from "./entraTab.ts";
import { session } from "./index.ts";
import css from "./SignIn.module.css";

/** A button that signs in with the organisation's account; in a new tab if this one has typed text. */
export function EntraButton({ config, inNewTab }: { config: EntraConfig; inNewTab: boolean }) {
  const [leaving, setLeaving] = useState(false);
  const [failed, setFailed] = useState<unknown>();
  const removal = useRef(new AbortController());
  // A tab that the person forgot must not replace a session that began in another way.
  useEffect(() => () => removal.current.abort(), []);
  const leave = async () => {
    setLeaving(true);
    setFailed(undefined);
    try {
      if (inNewTab) {
        const reply = signInInNewTab(config, isTooOld(), removal.current.signal);
        setLeaving(false);
        await session.signInWithEntra(await reply);
      } else {
        await goToEntra(config, isTooOld() ? {} : undefined);
      }
    } catch (error) {
      setFailed(isAbort(error) ? undefined : error);
      setLeaving(false);
    }
  };
  return (
    <>
      {failed !== undefined && <ErrorNotice error={failed} />}
      <Button kind="primary" busy={leaving} wide onClick={() => void leave()}>
        Sign in with Entra ID
      </Button>
      <p class={css.or}>or</p>
    </>
  );
}

/** Tells whether the session ended because its sign-in was too old; the account's session at Entra ID may be as old. */
function isTooOld(): boolean {
  return session.state.state === "out" && session.state.reason?.code === "REAUTHENTICATION_REQUIRED";
}
