import type { AmendmentRecord } from "@/api/amendments.ts";
import { useResource } from "@/components/useResource.ts";
import { findAlteredContent, findBrokenLinks, isAltered } from "@/pages/audit/alteration.ts";
import { type RecordView, toRecordView } from "@/pages/audit/recordView.ts";
import { formatRecordId, type JsonObject } from "@/proof/record.ts";

const NONE: ReadonlySet<string> = new Set();

/** Tells whether the content of a record no longer matches its hash; false while the browser checks it. */
export function useIsAltered(record: AmendmentRecord): boolean {
  return useResource(() => isAltered(record), [record]).data ?? false;
}

/**
 * Checks records in the browser.
 * @returns RecordIDs of those that are damaged or whose content no longer matches their hash. A broken link is no sign
 * here: it does not tell which of the two records was altered, and `BrokenLinksNotice` reports it
 */
export function useAlteredIds(records: readonly AmendmentRecord[]): ReadonlySet<string> {
  return useResource(() => findAlteredIds(records), [records]).data ?? NONE;
}

async function findAlteredIds(records: readonly AmendmentRecord[]): Promise<ReadonlySet<string>> {
  return new Set((await findAlteredContent(toViews(records))).map(({ id }) => id));
}

/** Returns the RecordIDs of records of one chain that do not link to a listed neighbour. */
export function findUnlinkedIds(records: readonly AmendmentRecord[]): readonly string[] {
  const unlinked = new Set(findBrokenLinks(toViews(records)));
  return [...unlinked].sort((left, right) => left - right).map(formatRecordId);
}

function toViews(records: readonly AmendmentRecord[]): RecordView[] {
  return records.map((record) => toRecordView(record as unknown as JsonObject));
}
