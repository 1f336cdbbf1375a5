// Changes whose first reply was lost, and then are repeated.
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ItemFormFrame } from "../../src/administration/ItemFormFrame.tsx";
import { RemoveButton } from "../../src/administration/RemoveButton.tsx";
import { type FormRules, useItemForm } from "../../src/administration/useItemForm.ts";
import type { StoredItem } from "../../src/api/items.ts";
import { ApiError, createUnreachableError } from "../../src/api/problem.ts";
import type { WarmQuery } from "../../src/api/queries.ts";
import type { Member } from "../../src/api/team.ts";
import { Field } from "../../src/components/Field.tsx";
import * as toasts from "../../src/components/toasts.ts";
import { Remove } from "../../src/pages/queries/detail/Remove.tsx";
import { MemberActions } from "../../src/pages/team/MemberActions.tsx";
import { session } from "../../src/session/index.ts";
import { mountRoot, press, root, show, submit, typeText } from "../mounted.ts";

interface Pump extends StoredItem {
  name: string;
}

const RULES: FormRules<Pump, { name: string }> = {
  ...{ noun: "pump", labels: { name: "Name" }, path: () => "/pumps/1", keyField: "name" },
  ...{ toDraft: ({ name }) => ({ name }), toBody: ({ name }) => ({ name }), check: () => ({}) },
};
const PUMP: Pump = { etag: '"1"', name: "Rig" };
const MEMBER: Member = {
  ...{ etag: '"1"', editedBy: null, updatedAt: null, id: "eve@t", name: "Eve", role: "Viewer" },
  ...{ rights: [], enabled: true, service: false, oid: null, accessRights: [] },
};

const QUERY = { etag: '"1"', lookup: "q", name: "Q" } as WarmQuery;

const outdated = () => new ApiError({ status: 412, code: "PRECONDITION_FAILED", detail: "" });
const missing = () => new ApiError({ status: 404, code: "NOT_FOUND", detail: "" });

beforeEach(() => {
  const who = { principal: "me", name: "Me", workspace: "w", via: "jwt", expiresAt: null };
  const state = { state: "in", who: { ...who, accessRights: ["Workspace.Team.Manage"] }, expiresAt: new Date() };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  window.location.hash = "";
});

afterEach(() => {
  window.location.hash = "";
});

mountRoot();

/** The service executes the first request of a method and loses its reply; later ones are refused. */
function loseFirstReply(method: "put" | "delete") {
  return vi.spyOn(session.api, method).mockRejectedValue(outdated()).mockRejectedValueOnce(createUnreachableError());
}

/** Presses a button twice: the first attempt has no reply. */
async function repeat(text: string) {
  await press(text);
  await vi.waitFor(() => expect(root.textContent).toContain("does not respond"));
  await vi.waitFor(() => expect(root.querySelector("[aria-busy=true]")).toBeNull());
  await press(text);
}

function PumpForm({ stored, onSaved }: { stored: Pump | null; onSaved: (item: Pump) => void }) {
  const form = useItemForm(RULES, stored, { name: "" }, onSaved);
  const change = (name: string) => form.change({ name });
  return (
    <ItemFormFrame form={form} editable createLabel="Add pump">
      <Field label="Name" value={form.draft.name} onInput={change} error={form.message("name")} />
    </ItemFormFrame>
  );
}

async function submitTwice() {
  await submit();
  await vi.waitFor(() => expect(root.textContent).toContain("does not respond"));
  await submit();
}

test("a repeated save counts as saved if the item is stored as typed", async () => {
  loseFirstReply("put");
  const saved = vi.fn();
  await show(<PumpForm stored={PUMP} onSaved={saved} />);
  await typeText("Pump");
  vi.spyOn(session.api, "get").mockResolvedValue({ etag: '"2"', name: "Pump" });
  await submitTwice();
  await vi.waitFor(() => expect(saved).toHaveBeenCalledWith({ etag: '"2"', name: "Pump" }, false));
  expect(root.textContent).not.toContain("Another person");
});

test("a repeated creation counts as added if the item is stored as typed", async () => {
  loseFirstReply("put");
  const saved = vi.fn();
  await show(<PumpForm stored={null} onSaved={saved} />);
  await typeText("Pump");
  vi.spyOn(session.api, "get").mockResolvedValue({ etag: '"1"', name: "Pump" });
  await submitTwice();
  await vi.waitFor(() => expect(saved).toHaveBeenCalledWith({ etag: '"1"', name: "Pump" }, true));
});

test("a repeated creation of an item that is stored otherwise does not claim that the key belongs to another", async () => {
  loseFirstReply("put");
  await show(<PumpForm stored={null} onSaved={() => undefined} />);
  vi.spyOn(session.api, "get").mockResolvedValue({ etag: '"1"', name: "Other" });
  await submitTwice();
  await vi.waitFor(() => expect(root.textContent).toContain("possibly from your earlier attempt"));
});

test("a conflict after a lost reply is possibly own, and a form without changes has nothing to save", async () => {
  loseFirstReply("put");
  await show(<PumpForm stored={PUMP} onSaved={() => undefined} />);
  await typeText("Pump");
  // Another instance still returns the earlier version.
  const get = vi.spyOn(session.api, "get").mockResolvedValue(PUMP);
  await submitTwice();
  await vi.waitFor(() => expect(root.textContent).toContain("possibly by your earlier attempt"));
  await press("Reload");
  await vi.waitFor(() => expect(root.textContent).toContain("not available yet"));
  expect(root.textContent).toContain("possibly by your earlier attempt");
  get.mockResolvedValue({ etag: '"2"', name: "Pump" });
  await press("Reload");
  await vi.waitFor(() => expect(root.textContent).toContain("You have no unsaved changes"));
  expect(root.textContent).not.toContain("not saved yet");
});

const remove = (
  <RemoveButton noun="pump" name="Rig" path="/pumps/1" etag={'"1"'} page="pumps" onReload={() => undefined}>
    <p>It is removed.</p>
  </RemoveButton>
);

test("a repeated removal counts as removed if the item is missing", async () => {
  loseFirstReply("delete");
  vi.spyOn(session.api, "get").mockRejectedValue(missing());
  await show(remove);
  await press("Remove");
  await repeat("Remove the pump");
  await vi.waitFor(() => expect(window.location.hash).toBe("#/pumps"));
});

test("a repeated removal of an item that exists does not claim that nothing was changed", async () => {
  loseFirstReply("delete");
  vi.spyOn(session.api, "get").mockResolvedValue({ ...PUMP, etag: '"2"' });
  await show(remove);
  await press("Remove");
  await repeat("Remove the pump");
  await vi.waitFor(() => expect(root.textContent).toContain("possibly by your earlier attempt"));
  expect(root.textContent).not.toContain("Nothing was changed");
});

test("a repeated disabling shows the member as disabled if the first attempt was executed", async () => {
  loseFirstReply("put");
  vi.spyOn(session.api, "get").mockResolvedValue({ ...MEMBER, etag: '"2"', enabled: false });
  const replace = vi.fn();
  await show(<MemberActions item={MEMBER} isRemoved={false} replace={replace} reload={() => undefined} />);
  await press("Disable");
  await repeat("Disable the member");
  await vi.waitFor(() => expect(replace).toHaveBeenCalledWith({ ...MEMBER, etag: '"2"', enabled: false }));
});

test("a repeated removal of a query counts as removed if the query is missing", async () => {
  loseFirstReply("delete");
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response('{"warmQueries": []}'));
  await show(<Remove query={QUERY} onChanged={() => undefined} />);
  await press("Delete");
  await repeat("Delete the query");
  await vi.waitFor(() => expect(window.location.hash).toBe("#/queries"));
});

test.each([
  ["an item", remove, "Remove", "Remove the pump"],
  ["a query", <Remove key="q" query={QUERY} onChanged={() => undefined} />, "Delete", "Delete the query"],
])(
  "a late reply to the removal of %s does not lead the user away from another page",
  async (_, shown, open, confirm) => {
    let reply: () => void = () => undefined;
    const toast = vi.spyOn(toasts, "showToast");
    vi.spyOn(session.api, "delete").mockImplementation(() => new Promise((resolve) => (reply = () => resolve())));
    await show(shown);
    await press(open);
    await press(confirm);
    await show(null);
    window.location.hash = "#/overview";
    await act(async () => reply());
    await vi.waitFor(() => expect(toast).toHaveBeenCalledOnce());
    expect(window.location.hash).toBe("#/overview");
  },
);
