import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { ApiError } from "../../src/api/problem.ts";
import { AllAmendments } from "../../src/pages/amendments/AllAmendments.tsx";
import { session } from "../../src/session/index.ts";
import { mountRoot, press, root, show } from "../mounted.ts";
import { addHash, makeAmendment, makeReply, signIn } from "./pages.ts";

mountRoot();

test("a retry after a failed change of a filter shows only rows of the new filter", async () => {
  signIn();
  const request = vi.spyOn(session.api, "request").mockResolvedValue(makeReply([makeAmendment(9, "approved")]));
  await show(<AllAmendments scope="s" />);
  await vi.waitFor(() => expect(root.textContent).toContain("000000000009"));
  request.mockRejectedValue(new ApiError({ status: 429, code: "RATE_LIMITED", detail: "Too many requests" }));
  await act(() => {
    const status = root.querySelector("select");
    if (status) status.value = "pending";
    status?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await vi.waitFor(() => expect(root.textContent).toContain("Too many requests"));
  expect(root.textContent).not.toContain("000000000009");
  request.mockResolvedValue(makeReply([makeAmendment(3)]));
  await press("Retry");
  await vi.waitFor(() => expect(root.textContent).toContain("000000000003"));
  expect(root.textContent).not.toContain("000000000009");
  expect(request.mock.lastCall?.[3]?.query).toMatchObject({ status: "pending", toSequence: undefined });
});

test("a decision that was altered in the store is marked, and decides no amendment", async () => {
  signIn();
  const amendment = makeAmendment(1);
  const decision = { RecordID: "000000000002", AmendmentID: amendment.RecordID, PreviousHash: amendment.Hash };
  const stored = addHash({ ...decision, EntityType: "Pump", EntityID: "p", Status: "rejected", Meaning: "rejection" });
  const request = vi.spyOn(session.api, "request");
  request.mockResolvedValueOnce(makeReply([{ ...stored, Status: "approved" }, amendment]));
  request.mockResolvedValueOnce(makeReply([]));
  await show(<AllAmendments scope="s" />);
  await vi.waitFor(() => expect(listStatuses()).toEqual(["altered", "decided"]));
});

test("a decision with a broken link decides no amendment, and the link is reported above the list", async () => {
  signIn();
  const amendment = makeAmendment(1);
  const decision = { RecordID: "000000000002", AmendmentID: amendment.RecordID, PreviousHash: "forged" };
  const stored = addHash({ ...decision, EntityType: "Pump", EntityID: "p", Status: "approved", Meaning: "approval" });
  const request = vi.spyOn(session.api, "request");
  request.mockResolvedValueOnce(makeReply([stored, amendment]));
  request.mockResolvedValueOnce(makeReply([]));
  await show(<AllAmendments scope="s" />);
  await vi.waitFor(() => expect(listStatuses()).toEqual(["approved", "decided"]));
  expect(root.querySelector("[role=alert]")?.textContent).toContain("Records 000000000001, 000000000002");
});

test("a forged decision with a new hash decides no amendment, because the next record does not link to it", async () => {
  signIn();
  const amendment = makeAmendment(1);
  const link = { RecordID: "000000000002", AmendmentID: amendment.RecordID, PreviousHash: amendment.Hash };
  const decision = { ...link, EntityType: "Pump", EntityID: "p", Status: "rejected", Meaning: "rejection" };
  const { Hash: _, ...following } = makeAmendment(3);
  const next = { ...following, PreviousHash: addHash(decision).Hash };
  const request = vi.spyOn(session.api, "request");
  request.mockResolvedValueOnce(makeReply([addHash(next), addHash({ ...decision, Status: "approved" }), amendment]));
  request.mockResolvedValueOnce(makeReply([]));
  await show(<AllAmendments scope="s" />);
  await vi.waitFor(() => expect(listStatuses().at(-1)).toBe("decided"));
  expect(root.querySelector("[role=alert]")?.textContent).toContain("Records 000000000002, 000000000003");
});

/** Returns the shown status of each record. */
function listStatuses(): (string | null | undefined)[] {
  const rows = [...root.querySelectorAll("[role=row]")].slice(1);
  return rows.map((row) => row.querySelectorAll("[role=gridcell]")[3]?.textContent);
}
