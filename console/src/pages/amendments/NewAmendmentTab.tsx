import { fetchReasonCategories } from "@/api/amendments.ts";
import { api } from "@/api/index.ts";
import { queryRecords } from "@/api/provenance.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import { fetchRecord } from "@/pages/audit/paging.ts";
import type { RecordView } from "@/pages/audit/recordView.ts";
import { formatRecordId } from "@/proof/record.ts";
import { useHasRights } from "@/session/hooks.ts";
import { AmendmentForm } from "./AmendmentForm.tsx";

interface Props {
  scope: string;
  /** Sequence of the plant event to amend; without it the form is empty at first. */
  record: number | undefined;
}

interface Start {
  categories: readonly string[];
  from: RecordView | null;
}

/** The tab for a new amendment, of a record or from scratch. */
export function NewAmendmentTab({ scope, record }: Props) {
  const canRead = useHasRights("Workspace.Provenance.Read");
  const wanted = canRead ? record : undefined;
  const resource = useResource((signal) => loadStart(scope, wanted, signal), [scope, wanted]);
  return (
    <Loaded resource={resource} rows={8}>
      {({ categories, from }) => (
        <>
          {record !== undefined && !from && (
            <Notice kind="warn" title={`Record ${formatRecordId(record)} cannot be read`}>
              {canRead
                ? "The scope does not contain this plant event; fill in the form by hand."
                : "Your token cannot read the audit log; fill in the form by hand."}
            </Notice>
          )}
          <AmendmentForm scope={scope} categories={categories} from={from} />
        </>
      )}
    </Loaded>
  );
}

async function loadStart(scope: string, record: number | undefined, signal: AbortSignal): Promise<Start> {
  const chain = { target: "DomainEvents", scopeKey: scope } as const;
  const [categories, from] = await Promise.all([
    fetchReasonCategories(api, signal),
    record === undefined ? null : fetchRecord((window, stop) => queryRecords(api, chain, window, stop), record, signal),
  ]);
  return { categories, from };
}
