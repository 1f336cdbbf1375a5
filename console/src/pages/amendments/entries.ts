// Amendments and decisions as entries of one list, and their current status.
import { type Amendment, type AmendmentRecord, isTransition, type Transition } from "@/api/amendments.ts";
import { parseRecordId } from "@/proof/record.ts";
import { findUnlinkedIds } from "./useAlteredRecords.ts";

/** An amendment or a decision, with the same properties for person and time. */
export interface Entry {
  readonly id: string;
  readonly who: string;
  readonly at: string;
  readonly status: string;
  readonly amendment: Amendment | undefined;
  readonly decision: Transition | undefined;
  /** True if the stored record was tampered with. */
  readonly damaged: boolean;
}

/** Converts a record to an entry. */
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

/** Returns the last sequence in a list of RecordIDs; a damaged record possibly has an invalid one. */
export function findLastSequence(ids: readonly string[]): number | undefined {
  const sequences = ids.map(parseRecordId).filter((sequence) => sequence !== null);
  return sequences.at(-1);
}

/** Returns the current status of each amendment, by its RecordID. */
export function computeStatuses(records: readonly AmendmentRecord[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const record of records) {
    found.set(isTransition(record) ? record.AmendmentID : record.RecordID, record.Status);
  }
  return found;
}

/** Returns the ids of the amendments that were stored as pending and have no decision among the records. */
export function findUndecided(records: readonly AmendmentRecord[]): ReadonlySet<string> {
  const decided = new Set(records.filter(isTransition).map((decision) => decision.AmendmentID));
  const pending = records.filter((record) => record.Status === "pending").map((record) => record.RecordID);
  return new Set(pending.filter((id) => !decided.has(id)));
}

/** Current status of amendments, as far as the loaded records tell it. */
export interface KnownStatuses {
  /** Ids of records that were altered in the store. */
  readonly altered: ReadonlySet<string>;
  /** Ids of amendments that were stored as pending and have no decision. */
  readonly pending: ReadonlySet<string>;
  /** Status by the id of the amendment, from the loaded records except altered ones and decisions with a broken link. */
  readonly decided: ReadonlyMap<string, string>;
}

/** Collects what records, oldest first, tell about the status of amendments. */
export function collectStatuses(
  records: readonly AmendmentRecord[],
  pending: ReadonlySet<string>,
  altered: ReadonlySet<string>,
): KnownStatuses {
  // A forged decision can have the hash of its content, but then it does not link to its neighbours.
  const unlinked = new Set(findUnlinkedIds(records));
  const reliable = records.filter(
    (record) => !(altered.has(record.RecordID) || (isTransition(record) && unlinked.has(record.RecordID))),
  );
  return { altered, pending, decided: computeStatuses(reliable) };
}

/** Returns the current status of an entry: of a decision its own, of an amendment what was decided about it. */
export function findCurrentStatus(
  { id, status, amendment }: Entry,
  { altered, pending, decided }: KnownStatuses,
): string {
  if (altered.has(id)) {
    return "altered";
  }
  if (amendment === undefined || status !== "pending" || pending.has(id)) {
    return status;
  }
  const found = decided.get(id);
  return found === undefined || found === "pending" ? "decided" : found;
}

/** Explains why a caller may not decide an amendment; undefined if they may. */
export function explainDenial(author: string, principal: string | null, canApprove: boolean): string | undefined {
  if (!canApprove) return "Your token lacks Workspace.Amendment.Approve; another person must approve or reject it.";
  if (principal === null) return "Your token has no user identity, but each decision records a user.";
  // Author and approver must differ; ids are compared without case.
  if (author.toLowerCase() === principal.toLowerCase())
    return "You made this amendment; another person must approve or reject it.";
  return undefined;
}
