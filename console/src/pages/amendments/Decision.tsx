import { useId, useState } from "preact/hooks";
import { type Amendment, approveAmendment, rejectAmendment, type Transition } from "@/api/amendments.ts";
import { createIdempotencyKey } from "@/api/idempotency.ts";
import { ApiError, api } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { TextArea } from "@/components/Field.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import css from "./Amendments.module.css";
import { explainDenial } from "./entries.ts";

type Kind = "approve" | "reject";

interface Props {
  scope: string;
  amendment: Amendment;
  /** Reloads the queue. */
  onReload: () => void;
}

/** Buttons to approve or reject an amendment, or the reason why the caller cannot. */
export function Decision({ scope, amendment, onReload }: Props) {
  const { principal } = useIdentity();
  const why = explainDenial(amendment.AmendedBy, principal, useHasRights("Workspace.Amendment.Approve"));
  const [open, setOpen] = useState<Kind>();
  const reason = useId();
  return (
    <div class={css.row} aria-describedby={why ? reason : undefined}>
      <Button kind="primary" icon="check" disabled={why !== undefined} onClick={() => setOpen("approve")}>
        Approve
      </Button>
      <Button kind="danger" icon="close" disabled={why !== undefined} onClick={() => setOpen("reject")}>
        Reject
      </Button>
      {why && (
        <p id={reason} class={css.soft}>
          {why}
        </p>
      )}
      {open && (
        <DecisionDialog
          kind={open}
          scope={scope}
          amendment={amendment}
          onClose={() => setOpen(undefined)}
          onReload={() => {
            setOpen(undefined);
            onReload();
          }}
        />
      )}
    </div>
  );
}

function DecisionDialog({ kind, scope, amendment, onClose, onReload }: Props & { kind: Kind; onClose: () => void }) {
  const { principal } = useIdentity();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [missing, setMissing] = useState<string>();
  const [error, setError] = useState<unknown>();
  // One key for each decision: a retry after a lost reply stores it once.
  const [key] = useState(createIdempotencyKey);
  const id = amendment.RecordID;
  const decide = async () => {
    if (kind === "reject" && reason.trim() === "") {
      setMissing("Enter a reason; it is recorded with the rejection.");
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const made = await sendDecision(kind, scope, id, reason.trim(), key);
      showToast(`${kind === "approve" ? "Approved" : "Rejected"}, recorded as ${made.RecordID}`);
      onReload();
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  const meanwhile = error instanceof ApiError && error.code === "AMENDMENT_NOT_PENDING" ? error : undefined;
  const verb = kind === "approve" ? "Approve" : "Reject";
  return (
    <Dialog
      title={`${verb} amendment ${id}`}
      onClose={onClose}
      actions={
        meanwhile ? (
          <Button kind="primary" icon="refresh" onClick={onReload}>
            Reload
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button kind={kind === "approve" ? "primary" : "danger"} busy={busy} onClick={() => void decide()}>
              {verb}
            </Button>
          </>
        )
      }
    >
      <p>
        Recorded permanently, as a signature: <b>{principal}</b>, the time, and the meaning{" "}
        <b>{kind === "approve" ? "approval" : "rejection"}</b>. The original does not change.
      </p>
      {kind === "reject" && (
        <TextArea label="Reason" value={reason} onInput={setReason} error={missing} rows={3} disabled={busy} />
      )}
      {meanwhile && (
        <Notice
          kind="warn"
          title={`Another decision came first: the amendment is ${String(meanwhile.members.currentStatus)}`}
        >
          Your decision was not recorded. Reload to see the pending amendments.
          <span class={css.soft}>
            <code>{meanwhile.code}</code> · request <code>{meanwhile.requestId}</code>
          </span>
        </Notice>
      )}
      {error !== undefined && !meanwhile && <ErrorNotice error={error} />}
    </Dialog>
  );
}

function sendDecision(kind: Kind, scope: string, id: string, reason: string, key: string): Promise<Transition> {
  return kind === "approve" ? approveAmendment(api, scope, id, key) : rejectAmendment(api, scope, id, reason, key);
}
