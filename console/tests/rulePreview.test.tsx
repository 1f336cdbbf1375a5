import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { RulePreview } from "../src/pages/alerts/RulePreview.tsx";
import { NEW_RULE } from "../src/pages/alerts/ruleDraft.ts";
import { session } from "../src/session/index.ts";

const DRAFT = { ...NEW_RULE, lookup: "r", name: "R", surface: "s", query: "q", conditionKind: "any" as const };

test("a preview disappears when the rule changes in a field that decides it", async () => {
  const accessRights = ["Workspace.WarmQuery.Execute"];
  const who = { principal: "me", name: "Me", workspace: "w", accessRights, via: "jwt", expiresAt: null };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  vi.spyOn(session.api, "get").mockResolvedValue({ columns: [], results: [], truncated: false });
  const root = document.body.appendChild(document.createElement("div"));
  await act(() => render(<RulePreview draft={DRAFT} />, root));
  await act(() => root.querySelector("button")?.click());
  await vi.waitFor(() => expect(root.textContent).toContain("Would have fired 0 times"));
  await act(() => render(<RulePreview draft={{ ...DRAFT, description: "d" }} />, root));
  expect(root.textContent).toContain("Would have fired 0 times");
  await act(() => render(<RulePreview draft={{ ...DRAFT, hold: "PT5M" }} />, root));
  expect(root.textContent).not.toContain("Would have fired");
  await act(() => render(null, root));
  root.remove();
});
