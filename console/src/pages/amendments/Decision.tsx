import { useId, useState } from "preact/hooks";
import { type Amendment, approveAmendment, rejectAmendment } from "@/api/amendments.ts";
import { announceDecision } from "@/api/decisions.ts";
import { ApiError } from "@/api/index.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { TextArea } from "@/components/Field.tsx";
import { JsonDiff } from "@/components/JsonDiff.tsx";
import { ErrorNotice, Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { VisibleText } from "@/components/VisibleText.tsx";
import { parseRecordId } from "@/proof/record.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { describeSubject, findSignature, type PendingSignature } from "@/signing/pendingSignature.ts";
import { SigningFields } from "@/signing/SigningFields.tsx";
import { useSigning } from "@/signing/useSigning.ts";
import css from "./Amendments.module.css";
import { explainDenial } from "./entries.ts";
import { buildQueueAddress } from "./place.ts";
import { useIsAltered } from "./useAlteredRecords.ts";

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
  const isAltered = useIsAltered(amendment);
  const denial = explainDenial(amendment.AmendedBy, principal, useHasRights("Workspace.Amendment.Approve"));
  const why = isAltered ? "An altered amendment cannot be approved or rejected." : denial;
  // A dialog that the caller left for a sign-in opens again.
  const [pending] = useState(() => findSignature(describeSubject("amendment", scope, amendment.RecordID), principal));
  const [open, setOpen] = useState<Kind | undefined>(denial === undefined ? pending?.verb : undefined);
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
      {open && !isAltered && (
        <DecisionDialog
          kind={open}
          pending={pending?.verb === open ? pending : undefined}
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

interface DialogProps extends Props {
  kind: Kind;
  pending: PendingSignature | undefined;
  onClose: () => void;
}

function DecisionDialog({ kind, pending, scope, amendment, onClose, onReload }: DialogProps) {
  const { principal } = useIdentity();
  const [reason, setReason] = useState(pending?.text ?? "");
  const [busy, setBusy] = useState(false);
  const [missing, setMissing] = useState<string>();
  const [error, setError] = useState<unknown>();
  const id = amendment.RecordID;
  const signing = useSigning({
    ...{ kind: "amendments", verb: kind, right: "Workspace.Amendment.Approve", pending },
    ...{ subject: describeSubject("amendment", scope, id), address: buildQueueAddress(scope, parseRecordId(id)) },
    text: reason,
  });
  const decide = async () => {
    if (kind === "reject" && reason.trim() === "") {
      setMissing("Enter a reason; it is recorded with the rejection.");
      return;
    }
    setMissing(undefined);
    if (!signing.validate()) return;
    setBusy(true);
    setError(undefined);
    try {
      const made = await signing.send((client, key, signature) =>
        kind === "approve"
          ? approveAmendment(client, scope, id, key, signature)
          : rejectAmendment(client, scope, id, reason.trim(), key, signature),
      );
      showToast(`${kind === "approve" ? "Approved" : "Rejected"}, recorded as ${made.RecordID}`);
      announceDecision();
      onReload();
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  const meanwhile = findEarlierDecision(error);
  // After an error the decision was possibly stored.
  const close = error === undefined ? onClose : onReload;
  const verb = kind === "approve" ? "Approve" : "Reject";
  const label = signing.required ? `Sign and ${kind}` : verb;
  return (
    <Dialog
      title={`${verb} amendment ${id}`}
      wide={signing.required}
      onClose={close}
      actions={
        meanwhile ? (
          <Button kind="primary" icon="refresh" onClick={onReload}>
            Reload
          </Button>
        ) : (
          <>
            <Button onClick={close}>Cancel</Button>
            <Button
              kind={kind === "approve" ? "primary" : "danger"}
              busy={busy || !signing.ready}
              onClick={() => void decide()}
            >
              {label}
            </Button>
          </>
        )
      }
    >
      {signing.required ? (
        <SignedContent amendment={amendment} />
      ) : (
        <p>
          The audit log permanently records <b>{principal}</b>, the time, and the meaning{" "}
          <b>{kind === "approve" ? "approval" : "rejection"}</b>. The original does not change.
        </p>
      )}
      {kind === "reject" && (
        <TextArea label="Reason" value={reason} onInput={setReason} error={missing} rows={3} disabled={busy} />
      )}
      <SigningFields signing={signing} busy={busy} onSign={() => void decide()} />
      {meanwhile && (
        <Notice
          kind="warn"
          title={`Another decision came first: the amendment is ${String(meanwhile.members.currentStatus)}`}
        >
          {meanwhile.isPossiblyOwn
            ? "It is possibly your own, from an earlier attempt. The edited decision was not recorded."
            : "Your decision was not recorded."}{" "}
          Reload to see the pending amendments.
          <span class={css.soft}>
            <code>{meanwhile.code}</code> · request <code>{meanwhile.requestId}</code>
          </span>
        </Notice>
      )}
      {error !== undefined && !meanwhile && <ErrorNotice error={error} />}
    </Dialog>
  );
}

/** What is signed: the amendment with its changes, author and reason. */
function SignedContent({ amendment }: { amendment: Amendment }) {
  return (
    <>
      <p>
        <VisibleText text={amendment.EntityType} />{" "}
        <b>
          <VisibleText text={amendment.EntityID} />
        </b>
        , amended by <VisibleText text={amendment.AmendedBy} />: <VisibleText text={amendment.ReasonCategory} />
        {amendment.ReasonText && (
          <>
            , <VisibleText text={amendment.ReasonText} />
          </>
        )}
      </p>
      <JsonDiff before={amendment.OriginalRecord} after={amendment.AmendedRecord} />
    </>
  );
}

/** Returns the error if another decision came first. */
function findEarlierDecision(error: unknown): ApiError | undefined {
  return error instanceof ApiError && error.code === "AMENDMENT_NOT_PENDING" ? error : undefined;
}
