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

/** Releases somebody else's draft. Where that cannot be, the reason stands beside the button. */
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

/** Why the reader may not approve a draft; undefined where they may. */
function useReason(query: WarmQuery): string | undefined {
  const { principal } = useIdentity();
  if (principal === null) {
    return "A token of a service has no identity, so it approves nothing.";
  }
  return principal.toLowerCase() === query.editedBy.toLowerCase()
    ? "You edited it last; somebody else with Workspace.WarmQuery.Approve approves it."
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
      // Nobody approves a text that they have not seen.
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
          {query.editedBy} edited it last. Once approved it answers everybody who may run queries, under your name; the
          audit log records that.
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

/** All that an author wrote. */
function listTexts(query: WarmQuery): string[] {
  const parameters = query.parameters.flatMap((each) => [each.name, formatPlain(each.default)]);
  return [query.name, query.description ?? "", query.kql, ...parameters];
}

function TwoPeople() {
  return (
    <Notice title="Two people are needed">
      <p>Whoever edits a query does not release it. Ask somebody else who holds Workspace.WarmQuery.Approve.</p>
    </Notice>
  );
}
