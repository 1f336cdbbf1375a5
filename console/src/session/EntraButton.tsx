import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { type EntraConfig, goToEntra } from "./entra.ts";
import css from "./SignIn.module.css";

/** A button that signs in with the organisation's account. */
export function EntraButton({ config }: { config: EntraConfig }) {
  const [leaving, setLeaving] = useState(false);
  const [failed, setFailed] = useState<unknown>();
  const leave = async () => {
    setLeaving(true);
    setFailed(undefined);
    try {
      await goToEntra(config);
    } catch (error) {
      setFailed(error);
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
