// Where amendments stand, from the records of their chain.
import { type Amendment, type AmendmentRecord, isTransition, type Transition } from "@/api/amendments.ts";

/** An amendment or a decision, with who and when by the same names. */
export interface Entry {
  readonly id: string;
  readonly who: string;
  readonly at: string;
  readonly status: string;
  readonly amendment: Amendment | undefined;
  readonly decision: Transition | undefined;
  /** Somebody changed it in the store, so that it is not what it should be. */
  readonly damaged: boolean;
}

/** Returns a record as an entry. */
export function toEntry(record: AmendmentRecord): Entry {
  if (isTransition(record)) {
    const who = record.ApprovedBy ?? record.RejectedBy ?? "";
    const at = record.ApprovedAt ?? record.RejectedAt ?? "";
    return { ...copyCommonFields(record), who, at, amendment: undefined, decision: record };
  }
  const damaged = !("OriginalRecord" in record && "AmendedRecord" in record);
  return {
    ...copyCommonFields(record),
    who: record.AmendedBy,
    at: record.AmendedAt,
    amendment: record,
    decision: undefined,
    damaged,
  };
}

function copyCommonFields(record: AmendmentRecord): { id: string; status: string; damaged: boolean } {
  return { id: record.RecordID, status: record.Status, damaged: false };
}

/** Returns where each amendment stands now, by its RecordID: as stored, or as decided since. */
export function computeStatuses(records: readonly AmendmentRecord[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const record of records) {
    found.set(isTransition(record) ? record.AmendmentID : record.RecordID, record.Status);
  }
  return found;
}

/** Tells why somebody may not decide an amendment, in words; undefined where they may. */
export function explainDenial(author: string, principal: string | null, canApprove: boolean): string | undefined {
  if (!canApprove) return "Your token does not carry Workspace.Amendment.Approve: somebody else decides.";
  if (principal === null) return "Your token names nobody, and a decision is somebody's.";
  // Maker and checker are two, in whatever case their ids are written.
  if (author.toLowerCase() === principal.toLowerCase()) return "You made this amendment; somebody else decides it.";
  return undefined;
}
