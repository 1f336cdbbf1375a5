import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Queue } from "../../src/pages/amendments/Queue.tsx";
import { session } from "../../src/session/index.ts";
import { makeAmendment, makeReply, signIn } from "./pages.ts";

let root: HTMLElement;

beforeEach(() => {
  signIn();
  root = document.body.appendChild(document.createElement("div"));
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
});

function findButton(text: string): HTMLButtonElement | undefined {
  return [...root.querySelectorAll("button")].find((button) => button.textContent?.includes(text));
}

test("a damaged amendment is reported, and the others of its scope can be decided", async () => {
  const damaged = { RecordID: "000000000002", Damaged: true, Content: "{", Hash: "x" };
  vi.spyOn(session.api, "request").mockResolvedValue(makeReply([damaged, makeAmendment(1)]));
  await act(() => render(<Queue scope="s" from={undefined} />, root));
  await vi.waitFor(() => expect(root.textContent).toContain("Record 000000000002 is damaged in the store"));
  expect(findButton("Approve")?.disabled).toBe(false);
  expect(root.querySelectorAll("article")).toHaveLength(1);
});

test("a page without pending amendments leads to newer ones", async () => {
  const request = vi.spyOn(session.api, "request").mockResolvedValue(makeReply([]));
  await act(() => render(<Queue scope="s" from={5} />, root));
  await vi.waitFor(() => expect(root.textContent).toContain("No pending amendments on this page"));
  request.mockResolvedValue(makeReply([makeAmendment(9)]));
  await act(() => findButton("Newer")?.click());
  await vi.waitFor(() => expect(root.textContent).toContain("000000000009"));
});

test("older amendments are reachable although the RecordID of the last one on the page is damaged", async () => {
  const damaged = { RecordID: "?", Damaged: true, Content: "{", Hash: "x" };
  const headers = new Headers({ "x-provenance-has-more": "true" });
  const page = { ...makeReply([makeAmendment(9), damaged]), headers };
  const request = vi.spyOn(session.api, "request").mockResolvedValue(page);
  await act(() => render(<Queue scope="s" from={undefined} />, root));
  await vi.waitFor(() => expect(root.textContent).toContain("000000000009"));
  request.mockResolvedValue(makeReply([makeAmendment(7)]));
  await act(() => findButton("Older")?.click());
  await vi.waitFor(() => expect(root.textContent).toContain("000000000007"));
});
