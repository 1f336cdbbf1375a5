import { useState } from "preact/hooks";
import { ApiError, isOutdated } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { InvisibleWarning } from "@/components/VisibleText.tsx";
import { formatPlain } from "@/format.ts";
import { useHasRights } from "@/session/hooks.ts";
import type { PendingSignature } from "@/signing/pendingSignature.ts";
import { SigningFields } from "@/signing/SigningFields.tsx";
import { Changes } from "./Changes.tsx";
import { DecidedText } from "./DecidedText.tsx";
import { DraftTrial } from "./DraftTrial.tsx";
import { decideDraft } from "./draftDecisions.ts";
import css from "./Facts.module.css";
import { Refusal } from "./Refusal.tsx";
import { useDraftSigning } from "./useDraftSigning.ts";

interface Props {
  query: WarmQuery;
  /** What was typed before a sign-in elsewhere. */
  pending: PendingSignature | undefined;
  onClose: () => void;
  onChanged: () => void;
}

/** The confirmation of an approval: KQL, parameters, changes since the last approval, and errors. */
export function ApproveDialog({ query, pending, onClose, onChanged }: Props) {
  const signing = useDraftSigning(query, "approve", "", pending);
  const proves = useHasRights("Workspace.Provenance.Read");
  const asks = useHasRights("Workspace.WarmQuery.AdHoc");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    onClose();
    if (error !== undefined) {
      onChanged();
    }
  };
  const approve = async () => {
    if (!signing.validate()) return;
    setBusy(true);
    try {
      await signing.send((client, key, signature) => decideDraft(client, query, "approve", key, { signature }));
      showToast(`“${query.name}” is approved`);
      onChanged();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Approve “${query.name}”?`}
      wide
      onClose={close}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="primary"
            icon="check"
            busy={busy || !signing.ready}
            disabled={isOutdated(error)}
            onClick={() => void approve()}
          >
            {signing.required ? "Sign and approve" : "Approve"}
          </Button>
        </>
      }
    >
      <div class={css.stack}>
        <p>
          {query.editedBy} edited it last. After approval, everyone with the right to run queries can use it; the audit
          log records your name.
        </p>
        <InvisibleWarning texts={listTexts(query)} />
        <DecidedText query={query} />
        {proves && <Changes query={query} />}
        {asks && (
          <details>
            <summary>Run the draft before you decide</summary>
            <div class={css.stack}>
              <DraftTrial query={query} />
            </div>
          </details>
        )}
        <SigningFields signing={signing} busy={busy} onSign={() => void approve()} />
        {error !== undefined && <Refusal error={error} undone="approved" onLook={close} />}
        {error instanceof ApiError && error.code === "MAKER_CHECKER_VIOLATION" && <TwoPeople />}
      </div>
    </Dialog>
  );
}

/** Returns all texts of the author. */
function listTexts(query: WarmQuery): string[] {
  const parameters = query.parameters.flatMap((each) => [each.name, formatPlain(each.default)]);
  return [query.name, query.description ?? "", query.kql, ...parameters];
}

function TwoPeople() {
  return (
    <Notice title="Two people are needed">
      <p>The last editor of a query cannot approve it. Ask another person with Workspace.WarmQuery.Approve.</p>
    </Notice>
  );
}
