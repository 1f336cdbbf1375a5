// An amendment as it is entered, and what is still wrong with it.
import type { NewAmendment } from "@/api/amendments.ts";
import type { RecordView } from "@/pages/audit/recordView.ts";
import { findChangedFields } from "@/proof/changes.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";

/** What stands in the form. */
export interface Draft {
  readonly EntityType: string;
  readonly EntityID: string;
  readonly OriginalRecord: string;
  readonly AmendedRecord: string;
  readonly ReasonCategory: string;
  readonly ReasonText: string;
}

export type DraftErrors = Partial<Record<keyof Draft, string>>;

/** What the form says so far: an amendment that can be sent, or what is wrong; and what changes in either case. */
export interface DraftValidation {
  readonly amendment: NewAmendment | undefined;
  readonly wrong: DraftErrors;
  /** Names of the members that differ; null while a state cannot be read. */
  readonly changed: readonly string[] | null;
}

/** Returns the form's first content: the state that a record left, twice, or nothing. */
export function createDraft(record: RecordView | null, categories: readonly string[]): Draft {
  const state = writeObject(record?.after ?? record?.before ?? {});
  return {
    EntityType: record?.entityType ?? "",
    EntityID: record?.entityId ?? "",
    OriginalRecord: state,
    AmendedRecord: state,
    ReasonCategory: categories[0] ?? "",
    ReasonText: "",
  };
}

/** Judges what was entered. */
export function validateDraft(draft: Draft): DraftValidation {
  const original = readObject(draft.OriginalRecord);
  const amended = readObject(draft.AmendedRecord);
  const readable = original.value && amended.value;
  const changed = readable ? findChangedFields(original.value, amended.value) : null;
  const wrong: DraftErrors = {
    ...(draft.EntityType.trim() === "" ? { EntityType: "Is required." } : {}),
    ...(draft.EntityID.trim() === "" ? { EntityID: "Is required." } : {}),
    ...(original.problem === undefined ? {} : { OriginalRecord: original.problem }),
    ...checkAmendedRecord(amended.problem, changed),
    ...(draft.ReasonCategory === "" ? { ReasonCategory: "Choose a reason." } : {}),
  };
  if (Object.keys(wrong).length > 0 || !readable || !changed) return { amendment: undefined, wrong, changed };
  const amendment = {
    ...{ EntityType: draft.EntityType, EntityID: draft.EntityID },
    ...{ OriginalRecord: original.value, AmendedRecord: amended.value, ChangedFields: changed },
    ...{ ReasonCategory: draft.ReasonCategory, ReasonText: draft.ReasonText },
  };
  return { amendment, wrong, changed };
}

function checkAmendedRecord(problem: string | undefined, changed: readonly string[] | null): DraftErrors {
  if (problem !== undefined) return { AmendedRecord: problem };
  return changed?.length === 0 ? { AmendedRecord: "Nothing differs from the original yet." } : {};
}
