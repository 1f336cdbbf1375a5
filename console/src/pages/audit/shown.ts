// A record of any container, as the page shows it.
import { type JsonObject, sequenceOf } from "@/proof/record.ts";

/** What lists and details show of a record. */
export interface Shown {
  readonly sequence: number;
  readonly id: string;
  readonly time: string;
  readonly who: string;
  readonly action: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  readonly hash: string;
  readonly previousHash: string;
  /** Nothing is left of the record but what stands in its place. */
  readonly damaged: boolean;
  readonly record: JsonObject;
}

const ACTORS = ["UserID", "AmendedBy", "ApprovedBy", "RejectedBy"];
const TIMES = ["Timestamp", "AmendedAt", "ApprovedAt", "RejectedAt"];

/** Returns a record of events, amendments or decisions as one shape. */
export function shown(record: JsonObject): Shown {
  return {
    sequence: sequenceOf(record.RecordID) ?? 0,
    id: text(record, "RecordID"),
    time: text(record, ...TIMES),
    who: text(record, ...ACTORS),
    action: actionOf(record),
    entityType: text(record, "EntityType"),
    entityId: text(record, "EntityID"),
    before: state(record, "BeforeState", "OriginalRecord"),
    after: state(record, "AfterState", "AmendedRecord"),
    hash: text(record, "Hash"),
    previousHash: text(record, "PreviousHash"),
    damaged: record.Damaged === true,
    record,
  };
}

function actionOf(record: JsonObject): string {
  if (record.Damaged === true) return "damaged";
  if ("AmendmentID" in record) return text(record, "Meaning");
  if ("AmendedRecord" in record) return `amendment, ${text(record, "Status")}`;
  return text(record, "ActionType");
}

function text(record: JsonObject, ...names: string[]): string {
  const found = names.map((name) => record[name]).find((value) => value !== undefined);
  return found === undefined ? "" : String(found);
}

function state(record: JsonObject, ...names: string[]): JsonObject | null {
  const found = names.map((name) => record[name]).find((value) => typeof value === "object" && value !== null);
  return (found as JsonObject | undefined) ?? null;
}
