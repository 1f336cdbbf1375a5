import { expect, test } from "vitest";
import type { AuditEvent } from "../src/api/provenance.ts";
import { describeExpected, findApprovalEvidence } from "../src/pages/queries/detail/approvalEvidence.ts";

const APPROVAL = { approvedBy: "admin@t", approvedAt: "2026-01-05T08:00:00Z" };

function createEvent(verb: string, approval: object | null): AuditEvent {
  return { ActionType: `Catalog.WarmQuery.${verb}`, AfterState: { approval } } as unknown as AuditEvent;
}

test("an approval that a document brought is told from a decision", () => {
  const imported = createEvent("Created", { ...APPROVAL, approvedAt: "2026-01-05T08:00:00.000000Z" });
  expect(findApprovalEvidence([imported], APPROVAL)).toEqual({ event: imported, isImported: true });
  const decided = createEvent("Approved", APPROVAL);
  expect(findApprovalEvidence([decided, createEvent("Created", null)], APPROVAL)?.isImported).toBe(false);
});

test("the evidence is the first event with the approval, not a later one that repeats it", () => {
  const decided = createEvent("Approved", APPROVAL);
  expect(findApprovalEvidence([createEvent("Updated", APPROVAL), decided], APPROVAL)?.event).toBe(decided);
});

test("another person's or another time's approval is no evidence", () => {
  const other = createEvent("Approved", { ...APPROVAL, approvedBy: "other@t" });
  const earlier = createEvent("Approved", { ...APPROVAL, approvedAt: "2025-01-05T08:00:00Z" });
  expect(findApprovalEvidence([other, earlier, createEvent("Removed", null)], APPROVAL)).toBeUndefined();
});

test("an approval from before the creation of its query is expected to be imported", () => {
  const expected = (createdAt: string) => describeExpected({ createdAt }, APPROVAL);
  expect(expected("2026-02-01T08:00:00Z")).toContain("imported");
  expect(expected("2026-01-01T08:00:00Z")).not.toContain("imported");
});
