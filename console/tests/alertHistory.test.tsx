import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { INCOMPLETE_ERROR } from "../src/components/dateFields.ts";
import { HistoryTab } from "../src/pages/alerts/HistoryTab.tsx";
import { session } from "../src/session/index.ts";
import { signIn } from "./amendments/pages.ts";
import { mountRoot, root, show } from "./mounted.ts";

const ALERT = { id: "1", name: "Hot", labels: {}, state: "resolved", startedAt: "2026-01-01T00:00:00Z" };

mountRoot();

test("an incomplete date of the history lists no alerts and loads no further pages", async () => {
  signIn();
  const get = vi.spyOn(session.api, "get").mockResolvedValue({ alerts: [ALERT], cursor: "second" });
  await show(<HistoryTab />);
  await vi.waitFor(() => expect(root.textContent).toContain("Hot"));
  const period = root.querySelector("select");
  await act(() => {
    if (period) period.value = "between";
    period?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(root.textContent).toContain("No alerts in this period");
  await act(() => {
    const from = root.querySelector("input");
    if (from) Object.defineProperty(from, "validity", { value: { badInput: true } });
    from?.dispatchEvent(new Event("input", { bubbles: true }));
  });
  expect(root.textContent).toContain(INCOMPLETE_ERROR);
  expect(root.textContent).not.toContain("No alerts in this period");
  expect(get).toHaveBeenCalledOnce();
});
