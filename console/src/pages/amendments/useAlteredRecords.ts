import type { AmendmentRecord } from "@/api/amendments.ts";
import { useResource } from "@/components/useResource.ts";
import { findAltered, isAltered } from "@/pages/audit/alteration.ts";
import { toRecordView } from "@/pages/audit/recordView.ts";
import type { JsonObject } from "@/proof/record.ts";

const NONE: ReadonlySet<string> = new Set();

/** Tells whether the content of a record no longer matches its hash; false while the browser checks it. */
export function useIsAltered(record: AmendmentRecord): boolean {
  return useResource(() => isAltered(record), [record]).data ?? false;
}

/**
 * Checks records of one chain in the browser.
 * @returns RecordIDs of those that were altered or do not link to a listed neighbour
 */
export function useAlteredIds(records: readonly AmendmentRecord[]): ReadonlySet<string> {
  return useResource(() => findAlteredIds(records), [records]).data ?? NONE;
}

async function findAlteredIds(records: readonly AmendmentRecord[]): Promise<ReadonlySet<string>> {
  const views = records.map((record) => toRecordView(record as unknown as JsonObject));
  const altered = await findAltered(views);
  return new Set(views.filter(({ sequence }) => altered.has(sequence)).map(({ id }) => id));
}
