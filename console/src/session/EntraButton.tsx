import { useState } from "preact/hooks";
import { Button } from "@/components/Button.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import { type EntraConfig, entraConfig, goToEntra } from "./entra.ts";
import css from "./SignIn.module.css";

/** Signs in with the organisation's account, where the service says how; nothing elsewhere. */
export function EntraButton() {
  const config = useResource(entraConfig, []);
  const [leaving, setLeaving] = useState(false);
  const [failed, setFailed] = useState<unknown>();
  if (!config.data) {
    return null;
  }
  const leave = async (to: EntraConfig) => {
    setLeaving(true);
    setFailed(undefined);
    try {
      await goToEntra(to);
    } catch (error) {
      setFailed(error);
      setLeaving(false);
    }
  };
  const to = config.data;
  return (
    <>
      {failed !== undefined && <ErrorNotice error={failed} />}
      <Button kind="primary" busy={leaving} wide onClick={() => void leave(to)}>
        Sign in with Entra ID
      </Button>
      <p class={css.or}>or</p>
    </>
  );
}
