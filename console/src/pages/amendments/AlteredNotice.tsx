import { useMemo } from "preact/hooks";
import type { AmendmentRecord } from "@/api/amendments.ts";
import { Notice } from "@/components/Notice.tsx";
import { ALTERED } from "@/pages/audit/alteration.ts";
import { findUnlinkedIds, useIsAltered } from "./useAlteredRecords.ts";

/** The warning above an amendment or a decision whose content no longer matches its hash. */
export function AlteredNotice({ record }: { record: AmendmentRecord }) {
  return useIsAltered(record) ? (
    <Notice kind="alarm" title={ALTERED}>
      The content does not match its hash: altered or damaged. “Verify chain” in the audit log shows what to do.
    </Notice>
  ) : null;
}

/** The warning above records of one chain of which neighbours do not link to each other. */
export function BrokenLinksNotice({ records }: { records: readonly AmendmentRecord[] }) {
  const ids = useMemo(() => findUnlinkedIds(records), [records]);
  return ids.length === 0 ? null : (
    <Notice kind="alarm" title="Some records do not link to their neighbour">
      Records {ids.join(", ")}: at least one was altered. “Verify chain” in the audit log shows what to do.
    </Notice>
  );
}

/** The notice in place of an amendment whose stored content cannot be read. */
export function DamagedNotice({ id }: { id: string }) {
  return (
    <Notice kind="alarm" title={ALTERED}>
      Record {id} is damaged in the store. “Verify chain” in the audit log shows what to do.
    </Notice>
  );
}
