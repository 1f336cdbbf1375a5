import { fetchReasonCategories } from "@/api/amendments.ts";
import { api } from "@/api/index.ts";
import { queryRecords } from "@/api/provenance.ts";
import { Loaded } from "@/components/Loaded.tsx";
import { Notice } from "@/components/Notice.tsx";
import { useResource } from "@/components/useResource.ts";
import { ALTERED, findAlteredContent } from "@/pages/audit/alteration.ts";
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
  /** The record to amend; null without one, and if its content cannot be trusted. */
  from: RecordView | null;
  /** Whether the record is damaged, or its content does not match its hash. */
  isAltered: boolean;
}

/** The tab for a new amendment, of a record or from scratch. */
export function NewAmendmentTab({ scope, record }: Props) {
  const canRead = useHasRights("Workspace.Provenance.Read");
  const wanted = canRead ? record : undefined;
  const resource = useResource((signal) => loadStart(scope, wanted, signal), [scope, wanted]);
  return (
    <Loaded resource={resource} rows={8}>
      {({ categories, from, isAltered }) => (
        <>
          {isAltered && (
            <Notice kind="alarm" title={ALTERED}>
              Record {formatRecordId(record ?? 0)} is altered or damaged, so its state is not filled in. “Verify chain”
              in the audit log shows what to do.
            </Notice>
          )}
          {record !== undefined && !from && !isAltered && (
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
  const [categories, found] = await Promise.all([
    fetchReasonCategories(api, signal),
    record === undefined ? null : fetchRecord((window, stop) => queryRecords(api, chain, window, stop), record, signal),
  ]);
  const isAltered = found !== null && (await findAlteredContent([found], signal)).length > 0;
  return { categories, from: isAltered ? null : found, isAltered };
}
