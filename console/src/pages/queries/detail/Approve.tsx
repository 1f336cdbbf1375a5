import { useState } from "preact/hooks";
import { ApiError, api, formatPath, isOutdated } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { CodeBlock } from "@/components/CodeBlock.tsx";
import { Dialog } from "@/components/Dialog.tsx";
import { Notice } from "@/components/Notice.tsx";
import { showToast } from "@/components/toasts.ts";
import { InvisibleWarning } from "@/components/VisibleText.tsx";
import { formatPlain } from "@/format.ts";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { Changes } from "./Changes.tsx";
import css from "./Facts.module.css";
import { Refusal } from "./Refusal.tsx";

interface Props {
  query: WarmQuery;
  onChanged: () => void;
}

/** A button to approve another person's draft, or the reason why the caller cannot. */
export function Approve({ query, onChanged }: Props) {
  const approves = useHasRights("Workspace.WarmQuery.Approve");
  const reason = useReason(query);
  const [asking, setAsking] = useState(false);
  if (!approves || query.approval) {
    return null;
  }
  return (
    <>
      <Button kind="primary" icon="check" disabled={reason !== undefined} onClick={() => setAsking(true)}>
        Approve
      </Button>
      {reason && <p class={css.why}>{reason}</p>}
      {asking && <Confirm query={query} onClose={() => setAsking(false)} onChanged={onChanged} />}
    </>
  );
}

/** Returns why the caller may not approve a draft; undefined if they may. */
function useReason(query: WarmQuery): string | undefined {
  const { principal } = useIdentity();
  if (principal === null) {
    return "Service tokens have no user identity, so they cannot approve queries.";
  }
  return principal.toLowerCase() === query.editedBy.toLowerCase()
    ? "You edited it last; another person with Workspace.WarmQuery.Approve must approve it."
    : undefined;
}

function Confirm({ query, onClose, onChanged }: Props & { onClose: () => void }) {
  const proves = useHasRights("Workspace.Provenance.Read");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    onClose();
    if (error !== undefined) {
      onChanged();
    }
  };
  const approve = async () => {
    setBusy(true);
    try {
      // The ETag prevents the approval of a text that the approver has not seen.
      const headers = { "If-Match": query.etag };
      await api.post(formatPath`/oi-api/warm-queries/${query.lookup}/approve`, undefined, { headers });
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
          <Button kind="primary" icon="check" busy={busy} disabled={isOutdated(error)} onClick={() => void approve()}>
            Approve
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
        <CodeBlock code={query.kql.trimEnd()} label={`KQL of ${query.name}`} />
        {proves && <Changes query={query} />}
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
