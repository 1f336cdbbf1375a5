import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { ApiError } from "../../src/api/problem.ts";
import { AllAmendments } from "../../src/pages/amendments/AllAmendments.tsx";
import { session } from "../../src/session/index.ts";
import { mountRoot, press, root, show } from "../mounted.ts";
import { makeAmendment, makeReply, signIn } from "./pages.ts";

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
