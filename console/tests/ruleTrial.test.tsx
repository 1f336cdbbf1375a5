import { expect, test, vi } from "vitest";
import { RulePage } from "../src/pages/alerts/RulePage.tsx";
import { session } from "../src/session/index.ts";
import { mountRoot, press, root, show, submit, typeInto } from "./mounted.ts";

const RULE = {
  ...{ lookup: "r", name: "Stored", description: null, severity: "warning", enabled: true, surface: "s" },
  ...{ kind: "absence", every: "PT1M", for: "PT0S", runbookUrl: null, connections: ["c"], after: "PT10M" },
  ...{ state: "ok", error: null, lastEvaluatedAt: null, nextEvaluationAt: null, editedBy: null, updatedAt: null },
  etag: '"1"',
};

mountRoot();

test("the result of a trial disappears when another version of the rule is saved", async () => {
  const accessRights = ["Workspace.Alert.Manage"];
  const who = { principal: "me", name: "Me", workspace: "w", accessRights, via: "jwt", expiresAt: null };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  vi.spyOn(session.api, "get").mockImplementation((path: string) =>
    Promise.resolve((path.endsWith("/r") ? RULE : { surfaces: [], connections: [], dataConnections: [] }) as never),
  );
  vi.spyOn(session.api, "post").mockResolvedValue({
    alerts: [{ labels: { connection: "c" }, value: null, wouldFire: true }],
    rows: 1,
    error: null,
  });
  vi.spyOn(session.api, "put").mockResolvedValue({ ...RULE, name: "Typed", etag: '"2"' });
  const groups = () => root.querySelector("[aria-label='Groups of the rule']");
  await show(<RulePage lookup="r" />);
  await vi.waitFor(() => expect(root.textContent).toContain("Evaluate now"));
  await press("Evaluate");
  await vi.waitFor(() => expect(groups()).not.toBeNull());
  const name = [...root.querySelectorAll<HTMLInputElement>("input")].find((each) => each.value === "Stored");
  await typeInto(name, "Typed");
  expect(groups()).not.toBeNull();
  await submit();
  await vi.waitFor(() => expect(root.querySelector("h1")?.textContent).toBe("Typed"));
  expect(groups()).toBeNull();
});
