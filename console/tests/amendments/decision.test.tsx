import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, createUnreachableError } from "../../src/api/problem.ts";
import { Decision } from "../../src/pages/amendments/Decision.tsx";
import { session } from "../../src/session/index.ts";
import { findButton, mountRoot, press, root, show, typeText } from "../mounted.ts";
import { makeAmendment, signIn } from "./pages.ts";

const reload = vi.fn();
/** Each test has an amendment of its own, because attempts of unknown outcome are remembered. */
let sequence = 0;

mountRoot();

beforeEach(async () => {
  signIn();
  sequence += 1;
  const amendment = makeAmendment(sequence) as never;
  await show(<Decision scope="s" amendment={amendment} onReload={reload} />);
});

afterEach(() => {
  reload.mockReset();
});

test("a retry keeps the idempotency key, an edited decision gets a new one", async () => {
  const failure = new ApiError({ status: 503, code: "UNAVAILABLE", detail: "The store is unavailable" });
  const post = vi.spyOn(session.api, "post").mockRejectedValue(failure);
  const send = async (attempts: number) => {
    await press("Reject");
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  };
  await press("Reject");
  await typeText("wrong");
  await send(1);
  await send(2);
  await typeText("wrong value");
  await send(3);
  const [first, second, third] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
  const decided = { status: 409, code: "AMENDMENT_NOT_PENDING", detail: "", members: { currentStatus: "rejected" } };
  post.mockRejectedValue(new ApiError(decided));
  await send(4);
  expect(root.textContent).toContain("possibly your own, from an earlier attempt");
  await press("Reload");
  expect(reload).toHaveBeenCalledOnce();
});

test("a decision that comes first is not the user's own if the service refused the earlier attempt for good", async () => {
  const refusal = new ApiError({ status: 400, code: "VALIDATION_FAILED", detail: "The reason is too long" });
  const post = vi.spyOn(session.api, "post").mockRejectedValueOnce(refusal);
  await press("Reject");
  await typeText("wrong");
  await press("Reject");
  await vi.waitFor(() => expect(root.textContent).toContain("The reason is too long"));
  const decided = { status: 409, code: "AMENDMENT_NOT_PENDING", detail: "", members: { currentStatus: "rejected" } };
  post.mockRejectedValueOnce(new ApiError(decided));
  await typeText("wrong value");
  await press("Reject");
  await vi.waitFor(() => expect(root.textContent).toContain("Your decision was not recorded"));
  expect(root.textContent).not.toContain("possibly your own");
});

test("a decision whose dialog was closed before its reply was lost is repeated with the same idempotency key", async () => {
  const post = vi.spyOn(session.api, "post");
  const approve = async () => {
    await press("Approve");
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
    await press("Approve");
  };
  let lose: (error: unknown) => void = () => undefined;
  post.mockReturnValueOnce(new Promise((_, reject) => (lose = reject)));
  await approve();
  await vi.waitFor(() => expect(post).toHaveBeenCalledOnce());
  await press("Cancel");
  await act(async () => lose(createUnreachableError()));
  expect(root.querySelector("dialog")).toBeNull();
  const decided = { status: 409, code: "AMENDMENT_NOT_PENDING", detail: "", members: { currentStatus: "approved" } };
  post.mockRejectedValueOnce(new ApiError({ status: 503, code: "UNAVAILABLE", detail: "The store is unavailable" }));
  post.mockRejectedValueOnce(new ApiError(decided));
  await approve();
  await vi.waitFor(() => expect(root.textContent).toContain("The store is unavailable"));
  await press("Cancel");
  await press("Reject");
  await typeText("wrong");
  await press("Reject");
  await vi.waitFor(() => expect(root.textContent).toContain("possibly your own, from an earlier attempt"));
  const [first, second, third] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
});

test("a rejection whose reply was lost is repeated with the same idempotency key if its reason is typed again", async () => {
  const post = vi.spyOn(session.api, "post").mockRejectedValueOnce(createUnreachableError());
  const reject = async (attempts: number) => {
    await press("Reject");
    await typeText("wrong");
    await press("Reject");
    await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(attempts));
    await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  };
  await reject(1);
  await press("Cancel");
  const decided = { status: 409, code: "AMENDMENT_NOT_PENDING", detail: "", members: { currentStatus: "rejected" } };
  post.mockRejectedValueOnce(new ApiError(decided));
  await reject(2);
  const [first, second] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(second).toBe(first);
  expect(root.textContent).not.toContain("edited");
});

test("an altered amendment can be neither approved nor rejected", async () => {
  const amendment = { ...makeAmendment(1), AmendedRecord: { a: 3 } } as never;
  await show(<Decision scope="s" amendment={amendment} onReload={reload} />);
  await vi.waitFor(() => expect(root.textContent).toContain("An altered amendment cannot be approved or rejected."));
  expect([findButton("Approve")?.disabled, findButton("Reject")?.disabled]).toEqual([true, true]);
});
