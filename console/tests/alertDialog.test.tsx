import { beforeEach, expect, test, vi } from "vitest";
import type { Alert } from "../src/api/alerts.ts";
import { AlertDialog } from "../src/pages/alerts/AlertDialog.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { findButton, mountRoot, press, root, show, typeText } from "./mounted.ts";

const ALERT = { id: "1", name: "Hot", rule: "hot", labels: {}, state: "firing", acknowledgedBy: null, value: 1 };
const changed = vi.fn();
const closed = vi.fn();

mountRoot();

/** Acknowledges the alert with the comment "mine", to which the service replies with what it stores. */
async function acknowledge(acknowledgedBy: string, comment: string): Promise<void> {
  const stored = { ...ALERT, acknowledgedBy, comment };
  const post = vi.spyOn(session.api, "post").mockResolvedValue(stored);
  await show(<AlertDialog alert={ALERT as unknown as Alert} onClose={closed} onChanged={changed} />);
  await typeText("mine");
  await press("Acknowledge");
  await vi.waitFor(() => expect(post).toHaveBeenCalledOnce());
}

beforeEach(() => {
  signIn(["Workspace.Alert.Manage"]);
  changed.mockReset();
  closed.mockReset();
});

test("the own acknowledgement closes the dialog, also if an earlier attempt with this comment was stored", async () => {
  await acknowledge("me", "mine");
  expect(closed).toHaveBeenCalledOnce();
  expect(changed).toHaveBeenCalledOnce();
});

test.each([
  ["ann@t", "ann@t acknowledged this alert first"],
  ["me", "You have already acknowledged this alert"],
])("an acknowledgement after one of %s with another comment is not reported as recorded", async (by, title) => {
  await acknowledge(by, "theirs");
  expect(root.textContent).toContain(title);
  expect(root.textContent).toContain("theirs");
  expect(root.querySelector("textarea")?.value).toBe("mine");
  expect(closed).not.toHaveBeenCalled();
  expect(findButton("Acknowledge")).toBeUndefined();
  vi.stubGlobal("confirm", () => true);
  await press("Close");
  expect(changed).toHaveBeenCalledOnce();
});
