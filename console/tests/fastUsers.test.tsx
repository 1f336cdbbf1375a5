// A user, or a test, can act between a rendering and the browser's next painting, or before a reply arrives.
import { readFileSync } from "node:fs";
import { type ComponentChild, render } from "preact";
import { useState } from "preact/hooks";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { type ItemForm, useItemForm } from "../src/administration/useItemForm.ts";
import type { StoredItem } from "../src/api/items.ts";
import { DataTable } from "../src/components/DataTable.tsx";
import { Field } from "../src/components/Field.tsx";
import { type Cursors, useCursors } from "../src/components/useCursors.ts";
import { useInvalidFocus } from "../src/components/useInvalidFocus.ts";
import { type Resource, useResource } from "../src/components/useResource.ts";
import { ChainPicker } from "../src/pages/audit/ChainPicker.tsx";
import { DocumentDialog } from "../src/pages/data/DocumentDialog.tsx";
import { CreateToken } from "../src/pages/keys/CreateToken.tsx";
import { KeyDialog } from "../src/pages/keys/KeyDialog.tsx";
import type { ListedKey } from "../src/pages/keys/KeyStatus.tsx";
import { session } from "../src/session/index.ts";
import { recordNavigation } from "../src/shell/focus.ts";
import { Page } from "../src/shell/Page.tsx";
import { toggleZone, useZone } from "../src/shell/timeZone.ts";
import { useMenuClosing } from "../src/shell/useMenuClosing.ts";
import { mountRoot, root } from "./mounted.ts";

mountRoot();

/** Renders without act(), which would also run the effects that come after painting. */
function show(child: ComponentChild): void {
  render(child, root);
}

/** Runs pending renderings and promises, but no effects that come after painting. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    await Promise.resolve();
  }
}

function find<E extends Element>(selector: string): E {
  return root.querySelector(selector) as E;
}

function type(input: HTMLInputElement, text: string): void {
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

test("the heading of a page has the focus as soon as the page appears", () => {
  recordNavigation();
  show(<Page title="Queries">content</Page>);
  expect(document.activeElement?.textContent).toBe("Queries");
});

function CheckedForm() {
  const { element, focusInvalid } = useInvalidFocus<HTMLFormElement>();
  const [error, setError] = useState<string>();
  const check = () => {
    setError("This field is required.");
    focusInvalid();
  };
  return (
    <form ref={element}>
      <Field label="Name" value="" onInput={() => undefined} error={error} />
      <button type="button" onClick={check}>
        Save
      </button>
    </form>
  );
}

test("the first invalid field has the focus as soon as its error appears", async () => {
  show(<CheckedForm />);
  find<HTMLButtonElement>("button").click();
  await settle();
  expect(root.textContent).toContain("required");
  expect(document.activeElement).toBe(find("input"));
});

function ShownZone() {
  return <p>{useZone()}</p>;
}

test("a switch of the time zone reaches a time that has just appeared", async () => {
  show(<ShownZone />);
  const before = root.textContent;
  toggleZone();
  await settle();
  expect(root.textContent).not.toBe(before);
  toggleZone();
});

function Menu({ close }: { close: () => void }) {
  useMenuClosing(true, close);
  return <p>menu</p>;
}

test("the first key after the menu appears closes it", () => {
  const close = vi.fn();
  show(<Menu close={close} />);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  expect(close).toHaveBeenCalledTimes(1);
});

test("a scope that is typed as soon as its field appears stays", async () => {
  vi.stubGlobal("fetch", () => new Promise(() => undefined));
  show(<ChainPicker chain={{ target: "DomainEvents", scopeKey: "line-1" }} />);
  type(find("input[list]"), "line-2");
  await settle();
  act(() => undefined);
  expect(find<HTMLInputElement>("input[list]").value).toBe("line-2");
});

function Loading({
  name,
  load,
  seen,
}: {
  name: string;
  load: () => Promise<string>;
  seen: (of: Resource<string>) => void;
}) {
  seen(useResource(load, [name]));
  return null;
}

test("data of earlier inputs do not appear as loaded for new inputs", async () => {
  const seen = vi.fn<(of: Resource<string>) => void>();
  show(<Loading name="a" load={() => Promise.resolve("a")} seen={seen} />);
  await settle();
  expect(seen.mock.lastCall?.[0]).toMatchObject({ data: "a", loading: false });
  show(<Loading name="b" load={() => new Promise(() => undefined)} seen={seen} />);
  await settle();
  expect(seen.mock.lastCall?.[0]).toMatchObject({ data: "a", loading: true });
});

function Paged({ seen }: { seen: (of: Cursors) => void }) {
  const cursors = useCursors();
  seen(cursors);
  return (
    <button type="button" onClick={cursors.toNext("second")}>
      Next
    </button>
  );
}

test("a double click on Next moves by one page", async () => {
  const seen = vi.fn<(of: Cursors) => void>();
  show(<Paged seen={seen} />);
  find<HTMLButtonElement>("button").click();
  await settle();
  find<HTMLButtonElement>("button").click();
  await settle();
  expect(seen.mock.lastCall?.[0]).toMatchObject({ cursor: "second", page: 2 });
});

const KEY: ListedKey = {
  keyId: "k",
  name: "gateway",
  principal: "me",
  accessRights: [],
  createdAt: "2026-01-05T08:00:00Z",
  expiresAt: null,
  lastUsedAt: null,
  revokedAt: null,
};
const TABLE = { store: "s", database: "d", name: "t", partitionKeyPath: "/line", verbs: new Set(["delete"] as const) };
const DOCUMENT = { id: "wo-1", line: "l1" };

/** Clicks the last button whose text begins so; `turn` is its number in a double click. */
async function click(text: string, turn: 1 | 2): Promise<void> {
  const button = [...root.querySelectorAll("button")].findLast((each) => each.textContent?.startsWith(text));
  button?.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: turn }));
  await settle();
}

test.each([
  ["Revoke", <KeyDialog of={KEY} onClose={() => undefined} onRevoked={() => undefined} />],
  [
    "Delete",
    <DocumentDialog
      table={TABLE}
      listed={DOCUMENT}
      onOutdated={() => undefined}
      onClose={() => undefined}
      onDone={() => undefined}
    />,
  ],
])("a double click on %s does not confirm it", async (label, dialog) => {
  const request = vi.spyOn(session.api, "delete").mockResolvedValue(undefined);
  show(dialog);
  await click(label, 1);
  await click(label, 2);
  expect(request).not.toHaveBeenCalled();
  expect(root.textContent).toContain("cannot be undone");
  await click(label, 1);
  expect(request).toHaveBeenCalledTimes(1);
});

const COLUMNS = [{ key: "name", title: "Name", value: (row: { name: string }) => row.name }];

function List({ names, onOpen }: { names: string[]; onOpen: (row: { name: string }) => void }) {
  const rows = names.map((name) => ({ name }));
  return <DataTable label="Rows" columns={COLUMNS} rows={rows} rowKey={({ name }) => name} onOpen={onOpen} />;
}

test("Enter opens the active row, also if a newer list has it at another place", async () => {
  const opened = vi.fn();
  const press = (key: string) =>
    find("[role=grid]").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  show(<List names={["a", "b"]} onOpen={opened} />);
  press("ArrowDown");
  await settle();
  press("ArrowDown");
  await settle();
  show(<List names={["new", "a", "b"]} onOpen={opened} />);
  press("Enter");
  expect(opened).toHaveBeenCalledExactlyOnceWith({ name: "b" });
  show(<List names={["new", "a"]} onOpen={opened} />);
  press("Enter");
  expect(opened).toHaveBeenCalledTimes(1);
});

interface Pump extends StoredItem {
  name: string;
  note: string;
}

interface PumpDraft {
  name: string;
  note: string;
}

const STORED: Pump = { name: "pump", note: "", etag: "1" };

test("text that is typed while a form is being saved stays", async () => {
  let reply: (item: Pump) => void = () => undefined;
  const forms: ItemForm<Pump, PumpDraft>[] = [];
  const saved = vi.fn();
  const rules = {
    noun: "pump",
    labels: { name: "Name", note: "Note" },
    path: () => "/pumps/1",
    toDraft: ({ name, note }: Pump) => ({ name, note }),
    toBody: (draft: PumpDraft) => draft,
    check: () => ({}),
    create: () => new Promise<Pump>((resolve) => (reply = resolve)),
  };
  function Form() {
    forms.push(useItemForm<Pump, PumpDraft>(rules, null, { name: "", note: "" }, saved));
    return null;
  }
  const form = () => forms.at(-1) as ItemForm<Pump, PumpDraft>;
  show(<Form />);
  form().change({ name: " pump" });
  await settle();
  form().submit(new Event("submit"));
  await settle();
  form().change({ note: "typed later" });
  await settle();
  reply(STORED);
  await settle();
  expect(saved).toHaveBeenCalledTimes(1);
  expect(form().draft).toEqual({ name: "pump", note: "typed later" });
  expect(form().hasChanges).toBe(true);
});

test("a lifetime that is chosen before the longest one is known stays", async () => {
  let reply: (until: string) => void = () => undefined;
  vi.spyOn(session, "longestExpiry").mockReturnValue(new Promise((resolve) => (reply = resolve)));
  await act(() => show(<CreateToken />));
  const radios = root.querySelectorAll<HTMLInputElement>("input[type=radio]");
  await act(() => radios[radios.length - 1]?.click());
  await act(() => type(find("input[type=text]"), "20"));
  await act(async () => {
    reply(new Date(Date.now() + 30 * 60_000).toISOString());
    await settle();
  });
  expect(find<HTMLInputElement>("input[type=text]").value).toBe("20");
});

test("the API Explorer shows the operations of the credential that was entered last", async () => {
  root.innerHTML =
    '<form id="sign-in"><input id="credential" /></form><p id="problem"></p><div id="signed-in" hidden><b id="who"></b><button id="other"></button></div>';
  const replies = new Map<string, (body: unknown) => void>();
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
  vi.stubGlobal("SwaggerUIBundle", () => undefined);
  vi.stubGlobal(
    "fetch",
    (address: string, { headers }: { headers: Record<string, string> }) =>
      new Promise((resolve) =>
        replies.set(`${headers.Authorization} ${address}`, (body) => resolve({ ok: true, json: async () => body })),
      ),
  );
  const source = readFileSync(`${import.meta.dirname}/../../web/explorer/explorer.js`, "utf8");
  new Function(source)();
  const enter = (credential: string) => {
    find<HTMLInputElement>("#credential").value = credential;
    find("form").dispatchEvent(new Event("submit", { cancelable: true }));
  };
  const answer = async (credential: string) => {
    replies.get(`Bearer ${credential} /oi-api/openapi`)?.({});
    replies.get(`Bearer ${credential} /workspace/api/keys/whoami`)?.({ name: credential });
    await settle();
  };
  enter("first");
  enter("second");
  await answer("second");
  await answer("first");
  expect(find("#who").textContent).toBe("second");
});
