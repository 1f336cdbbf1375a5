import { useLayoutEffect, useState } from "preact/hooks";
import { Attempts } from "@/api/attempts.ts";
import { api, formatPath, isOutdated } from "@/api/index.ts";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { ConfirmDialog } from "@/components/ConfirmDialog.tsx";
import { showToast } from "@/components/toasts.ts";
import { buildHref, navigate } from "@/router/route.ts";
import { fetchWarmQuery } from "../catalogQueries.ts";
import { Refusal } from "./Refusal.tsx";

interface Props {
  query: WarmQuery;
  onChanged: () => void;
}

/** A button that removes a query after a confirmation. */
export function Remove({ query, onChanged }: Props) {
  const [asking, setAsking] = useState(false);
  const [attempts] = useState(() => new Attempts());
  const [removed, setRemoved] = useState(false);
  // An effect, because a late reply must not lead a user away from another page.
  useLayoutEffect(() => {
    if (removed) {
      navigate(buildHref("queries"));
    }
  }, [removed]);
  const confirm = { query, attempts, onChanged, onClose: () => setAsking(false), onRemoved: () => setRemoved(true) };
  return (
    <>
      <Button kind="danger" onClick={() => setAsking(true)}>
        Delete
      </Button>
      {asking && <Confirm {...confirm} />}
    </>
  );
}

interface ConfirmProps extends Props {
  attempts: Attempts;
  onClose: () => void;
  onRemoved: () => void;
}

function Confirm({ query, attempts, onClose, onRemoved, onChanged }: ConfirmProps) {
  const look = () => {
    onClose();
    onChanged();
  };
  const send = async () => {
    await api.delete(formatPath`/oi-api/warm-queries/${query.lookup}`, { headers: { "If-Match": query.etag } });
    return true;
  };
  /** Returns true if an earlier attempt, whose reply was lost, removed the query. */
  const findRemoved = async () => (await fetchWarmQuery(query.lookup)) === undefined || undefined;
  const remove = async () => {
    await attempts.run(send, findRemoved);
    showToast(`“${query.name}” is deleted`);
    onRemoved();
  };
  return (
    <ConfirmDialog
      title={`Delete “${query.name}”?`}
      label="Delete the query"
      onClose={onClose}
      onConfirm={remove}
      renderError={(error) => <Refusal error={error} undone="deleted" onLook={look} />}
      isFinal={isOutdated}
    >
      <p>
        Programs that call <code>{query.apiPath ?? query.lookup}</code> will get an error. The audit log retains the
        query's text.
      </p>
    </ConfirmDialog>
  );
}
