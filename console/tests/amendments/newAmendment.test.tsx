import { expect, test, vi } from "vitest";
import { NewAmendmentTab } from "../../src/pages/amendments/NewAmendmentTab.tsx";
import { ALTERED } from "../../src/pages/audit/alteration.ts";
import { session } from "../../src/session/index.ts";
import { mountRoot, root, show } from "../mounted.ts";
import { addHash, makeReply, signIn } from "./pages.ts";

mountRoot();

const EVENT = addHash({
  ...{ RecordID: "000000000005", ActionType: "SetpointChanged", EntityType: "Pump", EntityID: "p" },
  ...{ Timestamp: "2026-01-01T00:00:00Z", UserID: "ann@t", AfterState: { setpoint: 40 }, PreviousHash: "0".repeat(64) },
});
const DAMAGED = { RecordID: "000000000005", Damaged: true, Content: "{", Hash: "x" };

/** Shows the form for an amendment of a stored record; returns the original record in it. */
async function openForm(stored: object): Promise<HTMLTextAreaElement | null> {
  signIn(["Workspace.Provenance.Read", "Workspace.Amendment.Read", "Workspace.Amendment.Create"]);
  vi.spyOn(session.api, "get").mockResolvedValue({ categories: ["other"] });
  vi.spyOn(session.api, "request").mockResolvedValue(makeReply([stored]));
  await show(<NewAmendmentTab scope="s" record={5} />);
  await vi.waitFor(() => expect(root.querySelector("textarea")).not.toBeNull());
  return root.querySelector("textarea");
}

test("an amendment of a sound record starts with the recorded state", async () => {
  const original = await openForm(EVENT);
  expect(original?.value).toContain('"setpoint": 40');
  expect(original?.readOnly).toBe(true);
  expect(root.querySelector("[role=alert]")).toBeNull();
});

test.each([
  ["altered", { ...EVENT, AfterState: { setpoint: 99 } }],
  ["damaged", DAMAGED],
])("the content of a record that is %s is reported, and not used as the original record", async (_, stored) => {
  const original = await openForm(stored);
  expect(original?.value).toBe("{}");
  expect(original?.readOnly).toBe(false);
  expect(root.querySelector("[role=alert]")?.textContent).toContain(ALTERED);
  expect(root.textContent).not.toContain("As recorded in");
});
