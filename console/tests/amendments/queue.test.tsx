import { act } from "preact/test-utils";
import { beforeEach, expect, test, vi } from "vitest";
import { Queue } from "../../src/pages/amendments/Queue.tsx";
import { session } from "../../src/session/index.ts";
import { findButton, mountRoot, press, root, show } from "../mounted.ts";
import { makeAmendment, makeReply, signIn } from "./pages.ts";

beforeEach(() => signIn());

mountRoot();

test("a damaged amendment is reported, and the others of its scope can be decided", async () => {
  const damaged = { RecordID: "000000000002", Damaged: true, Content: "{", Hash: "x" };
  vi.spyOn(session.api, "request").mockResolvedValue(makeReply([damaged, makeAmendment(1)]));
  await show(<Queue scope="s" from={undefined} />);
  await vi.waitFor(() => expect(root.textContent).toContain("Record 000000000002 is damaged in the store"));
  expect(findButton("Approve")?.disabled).toBe(false);
  expect(root.querySelectorAll("article")).toHaveLength(1);
});

test("a page without pending amendments leads to newer ones", async () => {
  const request = vi.spyOn(session.api, "request").mockResolvedValue(makeReply([]));
  await show(<Queue scope="s" from={5} />);
  await vi.waitFor(() => expect(root.textContent).toContain("No pending amendments on this page"));
  request.mockResolvedValue(makeReply([makeAmendment(9)]));
  await press("Newer");
  await vi.waitFor(() => expect(root.textContent).toContain("000000000009"));
});

test("older amendments are reachable although the RecordID of the last one on the page is damaged", async () => {
  const damaged = { RecordID: "?", Damaged: true, Content: "{", Hash: "x" };
  const headers = new Headers({ "x-provenance-has-more": "true" });
  const page = { ...makeReply([makeAmendment(9), damaged]), headers };
  const request = vi.spyOn(session.api, "request").mockResolvedValue(page);
  await show(<Queue scope="s" from={undefined} />);
  await vi.waitFor(() => expect(root.textContent).toContain("000000000009"));
  request.mockResolvedValue(makeReply([makeAmendment(7)]));
  await press("Older");
  await vi.waitFor(() => expect(root.textContent).toContain("000000000007"));
});

test("after a decision the focus moves to the next amendment, and after the last one to the list", async () => {
  const list = (...sequences: number[]) => makeReply(sequences.map(makePending));
  const request = vi.spyOn(session.api, "request").mockResolvedValue(list(9, 7));
  vi.spyOn(session.api, "get").mockRejectedValue(new Error("The policy is unknown"));
  vi.spyOn(session.api, "post").mockResolvedValue(makeAmendment(10));
  await show(<Queue scope="s" from={undefined} />);
  await approve(1, 1, () => request.mockResolvedValue(list(9)));
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Amendment 000000000009");
  await approve(0, 0, () => request.mockResolvedValue(list()));
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Pending amendments");
});

test("the focus after a decision skips no amendment if a damaged one precedes it", async () => {
  const list = (...sequences: number[]) =>
    makeReply([{ RecordID: "000000000012", Damaged: true, Content: "{", Hash: "x" }, ...sequences.map(makePending)]);
  const request = vi.spyOn(session.api, "request").mockResolvedValue(list(9, 7, 5));
  vi.spyOn(session.api, "get").mockRejectedValue(new Error("The policy is unknown"));
  vi.spyOn(session.api, "post").mockResolvedValue(makeAmendment(13));
  await show(<Queue scope="s" from={undefined} />);
  await approve(0, 2, () => request.mockResolvedValue(list(7, 5)));
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Amendment 000000000007");
});

const makePending = (sequence: number) => makeAmendment(sequence);

/** Approves the amendment at a position, after which a number of amendments is listed. */
async function approve(position: number, remaining: number, prepare: () => void): Promise<void> {
  await vi.waitFor(() => expect(findButton("Approve")).toBeDefined());
  await pressApprove(root.querySelectorAll("article")[position]);
  await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  prepare();
  await pressApprove(root.querySelector("dialog"));
  await vi.waitFor(() => expect(root.querySelectorAll("article")).toHaveLength(remaining));
}

/** Focuses and presses the button of a card or a dialog. */
async function pressApprove(part: Element | null | undefined): Promise<void> {
  const button = [...(part?.querySelectorAll("button") ?? [])].find((each) => each.textContent?.includes("Approve"));
  button?.focus();
  await act(() => button?.click());
}
