import { useState } from "preact/hooks";
import { api } from "@/api/index.ts";
import { revokeToken } from "@/api/keys.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Field } from "@/components/Field.tsx";
import { ErrorNotice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useInvalidFocus } from "@/components/useInvalidFocus.ts";
import { useUnsavedWarning } from "@/router/unsaved.ts";
import { readClaim } from "@/session/claims.ts";
import { useHasRights } from "@/session/hooks.ts";
import { Panel } from "@/shell/Page.tsx";
import css from "./Keys.module.css";

/** The form of a token's ID. Other text is not sent, because it becomes part of an address and can be a secret. */
const TOKEN_ID = /^[0-9a-f]{32}$/;

/** A form that revokes a token by its id, which the token and the audit log contain. */
export function RevokeToken() {
  const others = useHasRights("Workspace.Keys.Manage");
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string>();
  const [asked, setAsked] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  useUnsavedWarning(text !== "");
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  const submit = (event: Event) => {
    event.preventDefault();
    const given = text.trim();
    const tokenId = readClaim(given, "jti") ?? given;
    const error = checkTokenId(tokenId);
    setRefused(undefined);
    setWrong(error);
    focusInvalid();
    setAsked(error === undefined ? tokenId : undefined);
  };
  const revoke = async (tokenId: string) => {
    setBusy(true);
    try {
      await revokeToken(api, tokenId);
      showToast("The token is revoked");
      setText("");
    } catch (error) {
      setRefused(error);
    }
    setBusy(false);
    setAsked(undefined);
  };
  return (
    <Panel title="Revoke a token">
      <form ref={element} class={css.revoke} onSubmit={submit} noValidate>
        <p>
          The service rejects a revoked token, and all tokens issued with it, within 15 seconds.{" "}
          {others ? "You may revoke all tokens." : "You may revoke your own tokens."}
        </p>
        <Field
          label="Token or its ID"
          value={text}
          onInput={setText}
          error={wrong}
          hint="The ID is the claim jti of the token. The console shows it with each new token. In the audit log, it is the entity of the event Token.Issued. If you paste a token, only its ID is sent."
          mono
        />
        {refused !== undefined && <ErrorNotice error={refused} />}
        <Button kind="danger" type="submit">
          Revoke
        </Button>
      </form>
      {asked !== undefined && (
        <Dialog
          title="Revoke this token?"
          onClose={() => setAsked(undefined)}
          actions={
            <>
              <Button onClick={() => setAsked(undefined)}>Cancel</Button>
              <Button kind="danger" busy={busy} onClick={() => void revoke(asked)}>
                Revoke permanently
              </Button>
            </>
          }
        >
          <p>
            Programs that use <code>{asked}</code> stop working. If you signed in with it, this session ends.
          </p>
        </Dialog>
      )}
    </Panel>
  );
}

/** Returns why a text is no ID of a token; undefined if it is one. */
function checkTokenId(text: string): string | undefined {
  if (text === "") {
    return "Enter the token's ID, or paste the token.";
  }
  return TOKEN_ID.test(text)
    ? undefined
    : "This is neither a token of this workspace nor its ID of 32 hexadecimal digits. API keys have their own list.";
}
