import { afterEach, expect, test, vi } from "vitest";
import { ApiError, createUnreachableError } from "../src/api/problem.ts";
import type { Table } from "../src/api/tables.ts";
import { NewContainer, RemoveContainer } from "../src/pages/data/ContainerDialogs.tsx";
import { DocumentDialog } from "../src/pages/data/DocumentDialog.tsx";
import { NewDocument } from "../src/pages/data/NewDocument.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, press, root, show, typeText } from "./mounted.ts";

const TABLE: Table = {
  ...{ store: "orders", database: "mes", name: "workorders", partitionKeyPath: "/line" },
  verbs: new Set(["create", "read", "replace"]),
};
const exists = () => new ApiError({ status: 409, code: "DOCUMENT_EXISTS", detail: "The document exists" });
const done = vi.fn();
const dialog = { onClose: () => undefined, onDone: done };

afterEach(() => {
  done.mockReset();
});

mountRoot();

/** Presses a button whose request fails. */
async function fail(text: string, message: string) {
  await press(text);
  await vi.waitFor(() => expect(root.textContent).toContain(message));
  await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
}

test("a document without an id is created once if the reply to its creation is lost", async () => {
  const post = vi.spyOn(session.api, "post").mockRejectedValue(exists());
  post.mockRejectedValueOnce(createUnreachableError());
  await show(<NewDocument table={TABLE} {...dialog} />);
  await typeText('{"line": "l1"}');
  await fail("Create", "does not respond");
  await press("Create");
  await vi.waitFor(() => expect(done).toHaveBeenCalledOnce());
  const [first, second] = post.mock.calls.map(([, body]) => body);
  expect(first).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/), line: "l1" });
  expect(second).toEqual(first);
});

test("a text that was edited after a lost reply does not count as created", async () => {
  const post = vi.spyOn(session.api, "post").mockRejectedValue(exists());
  post.mockRejectedValueOnce(createUnreachableError());
  await show(<NewDocument table={TABLE} {...dialog} />);
  await typeText('{"line": "l1"}');
  await fail("Create", "does not respond");
  await typeText('{"line": "l1", "state": "open"}');
  await fail("Create", "possibly from your earlier attempt");
  expect(done).not.toHaveBeenCalled();
});

test("a document with an id of another document does not count as created", async () => {
  vi.spyOn(session.api, "post").mockRejectedValue(exists()).mockRejectedValueOnce(createUnreachableError());
  await show(<NewDocument table={TABLE} {...dialog} />);
  await typeText('{"id": "wo-1", "line": "l1"}');
  await fail("Create", "does not respond");
  await fail("Create", "The document exists");
  expect(done).not.toHaveBeenCalled();
});

test("a repeated save of a document counts as saved if the document is stored as typed", async () => {
  const stored = { id: "wo-1", line: "l1", state: "done" };
  const reply = (data: object, etag: string) => ({ status: 200, headers: new Headers({ etag }), data });
  const request = vi.spyOn(session.api, "request").mockResolvedValueOnce(reply({ ...stored, state: "open" }, '"1"'));
  const shown = { table: TABLE, listed: { ...stored, state: "open" }, onOutdated: () => undefined, ...dialog };
  await show(<DocumentDialog {...shown} />);
  await vi.waitFor(() => expect(root.querySelector("textarea")).not.toBeNull());
  await typeText(JSON.stringify(stored));
  request.mockRejectedValueOnce(createUnreachableError());
  await fail("Save", "does not respond");
  request.mockRejectedValueOnce(new ApiError({ status: 412, code: "PRECONDITION_FAILED", detail: "" }));
  request.mockResolvedValueOnce(reply(stored, '"2"'));
  await press("Save");
  await vi.waitFor(() => expect(done).toHaveBeenCalledOnce());
});

test("a repeated creation of a container has the same idempotency key, an edited one has another", async () => {
  const post = vi.spyOn(session.api, "post").mockRejectedValue(createUnreachableError());
  await show(<NewContainer database="mes" {...dialog} />);
  await typeText("orders");
  await fail("Create", "does not respond");
  await press("Create");
  await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(2));
  await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  await typeText("orders2");
  await press("Create");
  await vi.waitFor(() => expect(post).toHaveBeenCalledTimes(3));
  const [first, second, third] = post.mock.calls.map(([, , options]) => options?.headers?.["Idempotency-Key"]);
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
});

test.each([
  ["new document", <NewDocument key="d" table={TABLE} {...dialog} />, "Create", "post"],
  ["new container", <NewContainer key="c" database="mes" {...dialog} />, "Create", "post"],
  ["removal of a container", <RemoveContainer key="r" database="mes" name="wo" {...dialog} />, "Remove", "delete"],
] as const)("the dialog %s reloads the list at its end if a reply was lost", async (_, shown, button, method) => {
  vi.spyOn(session.api, method).mockRejectedValue(createUnreachableError());
  await show(shown);
  await typeText('{"line": "l1"}');
  await fail(button, "does not respond");
  expect(done).not.toHaveBeenCalled();
  await press(method === "post" ? "Cancel" : "Close");
  expect(done).toHaveBeenCalledOnce();
});

test("the dialog of a document reloads the list at its end only if the reply to a change was lost", async () => {
  const stored = { id: "wo-1", line: "l1" };
  const outdated = vi.fn();
  const reply = { status: 200, headers: new Headers({ etag: '"1"' }), data: stored };
  const request = vi.spyOn(session.api, "request").mockResolvedValue(reply);
  vi.stubGlobal("confirm", () => true);
  await show(<DocumentDialog table={TABLE} listed={stored} onOutdated={outdated} {...dialog} />);
  await vi.waitFor(() => expect(root.querySelector("textarea")).not.toBeNull());
  await press("Close");
  expect(outdated).not.toHaveBeenCalled();
  await typeText('{"id": "wo-1", "line": "l1", "state": "done"}');
  request.mockRejectedValueOnce(createUnreachableError());
  await fail("Save", "does not respond");
  await press("Close");
  expect(outdated).toHaveBeenCalledOnce();
});
