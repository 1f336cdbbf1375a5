import { expect, test } from "vitest";
import type { AmendmentRecord } from "@/api/amendments.ts";
import {
  collectStatuses,
  findCurrentStatus,
  findLastSequence,
  findUndecided,
  toEntry,
} from "@/pages/amendments/entries.ts";

const AMENDMENT = {
  RecordID: "000000000001",
  Status: "pending",
  AmendedBy: "a@t",
  OriginalRecord: {},
  AmendedRecord: {},
};
const DECISION = { RecordID: "000000000002", AmendmentID: AMENDMENT.RecordID, Status: "approved", Meaning: "approval" };

/** Returns the current status of each record, the newest first as in the list. */
function currentStatuses(records: object[], pending: string[], altered: string[] = []): string[] {
  const rows = records as AmendmentRecord[];
  const known = collectStatuses([...rows].reverse(), new Set(pending), new Set(altered));
  return rows.map((row) => findCurrentStatus(toEntry(row), known));
}

test("a decided amendment is not shown as pending, although it is stored so", () => {
  expect(currentStatuses([DECISION, AMENDMENT], [])).toEqual(["approved", "approved"]);
  expect(currentStatuses([{ ...DECISION, Status: "rejected" }, AMENDMENT], [])).toEqual(["rejected", "rejected"]);
});

test("a waiting amendment is pending, and one without a loaded decision is decided", () => {
  expect(currentStatuses([AMENDMENT], [AMENDMENT.RecordID])).toEqual(["pending"]);
  expect(currentStatuses([AMENDMENT], [])).toEqual(["decided"]);
  expect(currentStatuses([{ ...AMENDMENT, Status: "approved" }], [])).toEqual(["approved"]);
});

test("an altered record has no status, and an altered decision decides nothing", () => {
  const altered = [DECISION.RecordID];
  expect(currentStatuses([DECISION, AMENDMENT], [], altered)).toEqual(["altered", "decided"]);
  expect(currentStatuses([AMENDMENT], [AMENDMENT.RecordID], [AMENDMENT.RecordID])).toEqual(["altered"]);
});

test("an amendment is undecided without a decision among the records", () => {
  const records = [AMENDMENT, DECISION, { ...AMENDMENT, RecordID: "000000000003" }] as AmendmentRecord[];
  expect([...findUndecided(records)]).toEqual(["000000000003"]);
  expect([...findUndecided([{ ...AMENDMENT, Status: "approved" }] as AmendmentRecord[])]).toEqual([]);
});

test("the next page begins after the last valid RecordID, because a damaged record possibly has an invalid one", () => {
  expect(findLastSequence(["000000000009", "000000000008", "?"])).toBe(8);
  expect(findLastSequence(["?"])).toBeUndefined();
});
