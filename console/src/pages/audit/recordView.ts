// One view of the records of all containers.
import { type JsonObject, parseRecordId } from "@/proof/record.ts";

/** Properties of a record for lists and details. */
export interface RecordView {
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
  /** True if the stored content is not a valid record. */
  readonly damaged: boolean;
  readonly record: JsonObject;
}

const ACTORS = ["UserID", "AmendedBy", "ApprovedBy", "RejectedBy"];
const TIMES = ["Timestamp", "AmendedAt", "ApprovedAt", "RejectedAt"];

/** Converts an event, amendment or decision to a view. */
export function toRecordView(record: JsonObject): RecordView {
  return {
    sequence: parseRecordId(record.RecordID) ?? 0,
    id: readText(record, "RecordID"),
    time: readText(record, ...TIMES),
    who: readText(record, ...ACTORS),
    action: describeAction(record),
    entityType: readText(record, "EntityType"),
    entityId: readText(record, "EntityID"),
    before: readState(record, "BeforeState", "OriginalRecord"),
    after: readState(record, "AfterState", "AmendedRecord"),
    hash: readText(record, "Hash"),
    previousHash: readText(record, "PreviousHash"),
    damaged: record.Damaged === true,
    record,
  };
}

function describeAction(record: JsonObject): string {
  if (record.Damaged === true) return "damaged";
  if ("AmendmentID" in record) return readText(record, "Meaning");
  if ("AmendedRecord" in record) return `amendment, ${readText(record, "Status")}`;
  return readText(record, "ActionType");
}

function readText(record: JsonObject, ...names: string[]): string {
  const found = names.map((name) => record[name]).find((value) => value !== undefined);
  return found === undefined ? "" : String(found);
}

function readState(record: JsonObject, ...names: string[]): JsonObject | null {
  const found = names.map((name) => record[name]).find((value) => typeof value === "object" && value !== null);
  return (found as JsonObject | undefined) ?? null;
}
