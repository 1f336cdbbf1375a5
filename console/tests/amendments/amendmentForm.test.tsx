import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { AmendmentForm } from "../../src/pages/amendments/AmendmentForm.tsx";
import { toRecordView } from "../../src/pages/audit/recordView.ts";
import { session } from "../../src/session/index.ts";
import { makeAmendment, signIn } from "./pages.ts";

test("a further amendment starts empty, and its author enters the original", async () => {
  signIn();
  vi.spyOn(session.api, "post").mockResolvedValue(makeAmendment(7));
  const entity = { EntityType: "Pump", EntityID: "p", ActionType: "Set", AfterState: { a: 1 } };
  const from = toRecordView({ RecordID: "000000000042", ...entity, Timestamp: "2026-01-01T00:00:00Z" });
  const root = document.body.appendChild(document.createElement("div"));
  const press = (text: string) =>
    act(() => [...root.querySelectorAll("button")].find((button) => button.textContent?.includes(text))?.click());
  await act(() => render(<AmendmentForm scope="s" categories={["other"]} from={from} />, root));
  const [original, amended] = root.querySelectorAll("textarea");
  expect(original?.readOnly).toBe(true);
  await act(() => {
    if (amended) amended.value = '{"a":2}';
    amended?.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await act(() => {
    root.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  });
  await press("Send amendment");
  await vi.waitFor(() => expect(root.textContent).toContain("Amendment recorded"));
  await press("Another amendment");
  expect(root.querySelector("h2")?.textContent).toBe("Original and amended record");
  expect(root.querySelector("textarea")?.readOnly).toBe(false);
  expect(root.textContent).not.toContain("As recorded in");
  await act(() => render(null, root));
  root.remove();
});
