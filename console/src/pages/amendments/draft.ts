// The form of an amendment, and its validation.
import type { NewAmendment } from "@/api/amendments.ts";
import type { RecordView } from "@/pages/audit/recordView.ts";
import { findChangedFields } from "@/proof/changes.ts";
import { readObject, writeObject } from "@/proof/jsonText.ts";

/** Values of the form. */
export interface Draft {
  readonly EntityType: string;
  readonly EntityID: string;
  readonly OriginalRecord: string;
  readonly AmendedRecord: string;
  readonly ReasonCategory: string;
  readonly ReasonText: string;
}

export type DraftErrors = Partial<Record<keyof Draft, string>>;

/** Result of a validation: a complete amendment or the errors, and the changed fields. */
export interface DraftValidation {
  readonly amendment: NewAmendment | undefined;
  readonly wrong: DraftErrors;
  /** Names of the changed properties; null while a record is invalid. */
  readonly changed: readonly string[] | null;
}

/** Returns the initial form: both states equal to the record's later state, or empty. */
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

/** Validates the form. */
export function validateDraft(draft: Draft): DraftValidation {
  const original = readObject(draft.OriginalRecord);
  const amended = readObject(draft.AmendedRecord);
  const readable = original.value && amended.value;
  const changed = readable ? findChangedFields(original.value, amended.value) : null;
  const wrong: DraftErrors = {
    ...(draft.EntityType.trim() === "" ? { EntityType: "This field is required." } : {}),
    ...(draft.EntityID.trim() === "" ? { EntityID: "This field is required." } : {}),
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
  return changed?.length === 0 ? { AmendedRecord: "The amended record equals the original." } : {};
}
