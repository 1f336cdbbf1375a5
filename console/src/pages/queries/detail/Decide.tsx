import { useState } from "preact/hooks";
import type { WarmQuery } from "@/api/queries.ts";
import { Button } from "@/components/Button.tsx";
import { useHasRights, useIdentity } from "@/session/hooks.ts";
import { ApproveDialog } from "./ApproveDialog.tsx";
import { explainDraftDenial } from "./draftDecisions.ts";
import css from "./Facts.module.css";
import { RejectDialog } from "./RejectDialog.tsx";
import { findDraftSignature } from "./useDraftSigning.ts";

interface Props {
  query: WarmQuery;
  onChanged: () => void;
}

/** Buttons to approve or reject another person's draft, or the reason why the caller cannot. */
export function Decide({ query, onChanged }: Props) {
  const approves = useHasRights("Workspace.WarmQuery.Approve");
  const { principal } = useIdentity();
  const reason = explainDraftDenial(query, principal);
  // A dialog that the caller left for a sign-in opens again.
  const [pending] = useState(() => findDraftSignature(query, principal));
  const [open, setOpen] = useState<"approve" | "reject" | undefined>(reason === undefined ? pending?.verb : undefined);
  if (!approves || query.approval) {
    return null;
  }
  const typed = pending?.verb === open ? pending : undefined;
  const dialog = { query, onChanged, pending: typed, onClose: () => setOpen(undefined) };
  return (
    <>
      <Button kind="danger" icon="close" disabled={reason !== undefined} onClick={() => setOpen("reject")}>
        Reject
      </Button>
      <Button kind="primary" icon="check" disabled={reason !== undefined} onClick={() => setOpen("approve")}>
        Approve
      </Button>
      {reason && <p class={css.why}>{reason}</p>}
      {open === "approve" && <ApproveDialog {...dialog} />}
      {open === "reject" && <RejectDialog {...dialog} />}
    </>
  );
}
