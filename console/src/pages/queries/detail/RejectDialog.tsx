import { useState } from "preact/hooks";
import { ApiError, isOutdated } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { TextArea } from "@/components/Field.tsx";
import { showToast } from "@/components/toasts.ts";
import { useHasRights } from "@/session/hooks.ts";
import type { PendingSignature } from "@/signing/pendingSignature.ts";
import { SigningFields } from "@/signing/SigningFields.tsx";
import { Changes } from "./Changes.tsx";
import { DecidedText } from "./DecidedText.tsx";
import { decideDraft } from "./draftDecisions.ts";
import { Refusal } from "./Refusal.tsx";
import { useDraftSigning } from "./useDraftSigning.ts";

interface Props {
  query: WarmQuery;
  /** What was typed before a sign-in elsewhere. */
  pending: PendingSignature | undefined;
  onClose: () => void;
  onChanged: () => void;
}

/** The rejection of a draft, with a comment for its editor. */
export function RejectDialog({ query, pending, onClose, onChanged }: Props) {
  const proves = useHasRights("Workspace.Provenance.Read");
  const [comment, setComment] = useState(pending?.text ?? "");
  const signing = useDraftSigning(query, "reject", comment, pending);
  const [missing, setMissing] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    onClose();
    if (error !== undefined) {
      onChanged();
    }
  };
  const reject = async () => {
    if (comment.trim() === "") {
      setMissing("Enter a comment; the editor reads it.");
      return;
    }
    setMissing(undefined);
    if (!signing.validate()) return;
    setBusy(true);
    try {
      await signing.send((client, key, signature) =>
        decideDraft(client, query, "reject", key, { comment: comment.trim(), signature }),
      );
      showToast(`“${query.name}” is rejected`);
      onChanged();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const wrong = missing ?? (error instanceof ApiError ? error.fieldMessage("comment") : undefined);
  return (
    <Dialog
      title={`Reject “${query.name}”?`}
      wide={signing.required}
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="danger"
            icon="close"
            busy={busy || !signing.ready}
            disabled={isOutdated(error)}
            onClick={() => void reject()}
          >
            {signing.required ? "Sign and reject" : "Reject"}
          </Button>
        </>
      }
    >
      <p>
        {query.editedBy} edited it last and can change it; then it waits for a decision again. The audit log records
        your name and the comment.
      </p>
      {signing.required && <DecidedText query={query} />}
      {signing.required && proves && <Changes query={query} />}
      <TextArea label="Comment" value={comment} onInput={setComment} error={wrong} rows={4} disabled={busy} />
      <SigningFields signing={signing} busy={busy} onSign={() => void reject()} />
      {error !== undefined && <Refusal error={error} undone="rejected" onLook={close} />}
    </Dialog>
  );
}
