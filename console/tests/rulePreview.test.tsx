import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { RulePreview } from "../src/pages/alerts/RulePreview.tsx";
import { NEW_RULE } from "../src/pages/alerts/ruleDraft.ts";
import { session } from "../src/session/index.ts";
import { mountRoot, root, show } from "./mounted.ts";

const DRAFT = { ...NEW_RULE, lookup: "r", name: "R", surface: "s", query: "q", conditionKind: "any" as const };

mountRoot();

test("a preview disappears when the rule changes in a field that decides it", async () => {
  const accessRights = ["Workspace.WarmQuery.Execute"];
  const who = { principal: "me", name: "Me", workspace: "w", accessRights, via: "jwt", expiresAt: null };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  vi.spyOn(session.api, "get").mockResolvedValue({ columns: [], results: [], truncated: false });
  await show(<RulePreview draft={DRAFT} />);
  await act(() => root.querySelector("button")?.click());
  await vi.waitFor(() => expect(root.textContent).toContain("Would have fired 0 times"));
  await show(<RulePreview draft={{ ...DRAFT, description: "d" }} />);
  expect(root.textContent).toContain("Would have fired 0 times");
  await show(<RulePreview draft={{ ...DRAFT, hold: "PT5M" }} />);
  expect(root.textContent).not.toContain("Would have fired");
});
