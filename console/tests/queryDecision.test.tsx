import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError, createUnreachableError } from "../src/api/problem.ts";
import type { WarmQuery } from "../src/api/queries.ts";
import { ApproveDialog } from "../src/pages/queries/detail/ApproveDialog.tsx";
import { RejectDialog } from "../src/pages/queries/detail/RejectDialog.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, press, root, show, typeText } from "./mounted.ts";

const QUERY: WarmQuery = {
  ...{ etag: '"1"', lookup: "q", apiPath: null, name: "Q", description: null, surface: "cooling" },
  ...{ kql: "T", parameters: [], cacheSeconds: 0, schema: null, createdAt: "", updatedAt: "" },
  ...{ editedBy: "ann@t", approval: null },
};
const OUTDATED = { status: 412, code: "PRECONDITION_FAILED", detail: "" };

const done = vi.fn();
let dialog = { query: QUERY, pending: undefined, onClose: done, onChanged: () => undefined };
let count = 0;

beforeEach(() => {
  signIn();
  count += 1;
  // Each test has a query of its own, because attempts of unknown outcome are remembered.
  dialog = { ...dialog, query: { ...QUERY, lookup: `q${count}` } };
});

afterEach(() => {
  done.mockReset();
});

mountRoot();

const isBusy = () => root.querySelector("[aria-busy=true]") !== null;

/** Returns the texts of the rows of all tables. */
const listRows = () => [...root.querySelectorAll("tbody tr")].map((row) => row.textContent);

/** Presses the button of the dialog, and waits for the reply. */
async function send(text: string, reply: () => unknown) {
  await vi.waitFor(() => expect(isBusy()).toBe(false));
  const post = vi.spyOn(session.api, "post").mockImplementationOnce(async () => reply() as never);
  const before = post.mock.calls.length;
  await press(text);
  await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(before + 1));
  await vi.waitFor(() => expect(done.mock.calls.length > 0 || !isBusy()).toBe(true));
  return post.mock.lastCall?.[2]?.headers;
}

const fail = (problem: ConstructorParameters<typeof ApiError>[0]) => () => {
  throw new ApiError(problem);
};

const lose = () => {
  throw createUnreachableError();
};

test("an approval whose reply was lost is repeated with the same idempotency key and condition", async () => {
  await show(<ApproveDialog {...dialog} />);
  const first = await send("Approve", lose);
  const second = await send("Approve", () => QUERY);
  expect(first).toEqual({ "If-Match": '"1"', "Idempotency-Key": expect.stringMatching(/^[0-9a-f]{32}$/) });
  expect(second).toEqual(first);
  expect(done).toHaveBeenCalledOnce();
});

test("an edited rejection has another idempotency key, and does not deny that the earlier one was stored", async () => {
  await show(<RejectDialog {...dialog} />);
  await typeText("wrong");
  const first = await send("Reject", lose);
  await typeText("wrong limit");
  const second = await send("Reject", fail(OUTDATED));
  expect(second?.["Idempotency-Key"]).not.toBe(first?.["Idempotency-Key"]);
  expect(root.textContent).toContain("possibly by your earlier attempt");
  expect(root.textContent).not.toContain("It was not rejected");
});

test("the dialogs of a signed decision show the parameters with their defaults", async () => {
  const parameters = [
    { name: "limit", type: "real", default: 1e9 },
    { name: "device", type: "string" },
  ];
  const query = { ...dialog.query, parameters };
  await show(<ApproveDialog {...dialog} query={query} />);
  expect(listRows()).toEqual(["limitreal1000000000", "devicestringrequired"]);
  await show(<RejectDialog {...dialog} query={query} />);
  await typeText("wrong");
  vi.stubGlobal("fetch", async () => new Response("{}"));
  await send("Reject", fail({ status: 400, code: "SIGNATURE_REQUIRED", detail: "" }));
  expect(listRows()).toEqual(["limitreal1000000000", "devicestringrequired"]);
});

test("a query that was approved by a lost attempt, and then edited, is not reported as never approved", async () => {
  await show(<ApproveDialog {...dialog} />);
  await send("Approve", lose);
  await send("Approve", fail(OUTDATED));
  expect(root.textContent).toContain("possibly by your earlier attempt");
});

test("without an attempt of unknown outcome, a changed query was changed by another person", async () => {
  await show(<RejectDialog {...dialog} />);
  await typeText("wrong");
  await send("Reject", fail({ status: 400, code: "VALIDATION_FAILED", detail: "The comment is too long" }));
  await typeText("short");
  await send("Reject", fail(OUTDATED));
  expect(root.textContent).toContain("Another person changed the query meanwhile. It was not rejected.");
});

test("after a sign-in with other rights, the decision is repeated with another idempotency key", async () => {
  await show(<ApproveDialog {...dialog} />);
  const first = await send("Approve", fail({ status: 422, code: "IDEMPOTENCY_KEY_REUSED", detail: "" }));
  const second = await send("Approve", () => QUERY);
  expect(second?.["Idempotency-Key"]).not.toBe(first?.["Idempotency-Key"]);
});
