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

test("the history contains the newest alerts while the clock of this machine is behind", async () => {
  signIn();
  const startedAt = new Date(Date.now() + 3_600_000).toISOString();
  const old = new Date(Date.now() - 86_400_000).toISOString();
  const alerts = [
    { ...ALERT, startedAt },
    { ...ALERT, id: "2", name: "Cold", startedAt: old },
  ];
  vi.spyOn(session.api, "get").mockResolvedValue({ alerts });
  vi.spyOn(session, "now").mockReturnValue(new Date(Date.now() + 3_600_000));
  await show(<HistoryTab />);
  await vi.waitFor(() => expect(root.textContent).toContain("Hot"));
  const period = root.querySelector("select");
  await act(() => {
    if (period) period.value = "86400";
    period?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(root.textContent).toContain("Hot");
  expect(root.textContent).not.toContain("Cold");
});
