import { expect, test, vi } from "vitest";
import { AmendmentForm } from "../../src/pages/amendments/AmendmentForm.tsx";
import { toRecordView } from "../../src/pages/audit/recordView.ts";
import { session } from "../../src/session/index.ts";
import { mountRoot, press, root, show, submit, typeInto } from "../mounted.ts";
import { makeAmendment, signIn } from "./pages.ts";

mountRoot();

test("a further amendment starts empty, and its author enters the original", async () => {
  signIn();
  vi.spyOn(session.api, "post").mockResolvedValue(makeAmendment(7));
  const entity = { EntityType: "Pump", EntityID: "p", ActionType: "Set", AfterState: { a: 1 } };
  const from = toRecordView({ RecordID: "000000000042", ...entity, Timestamp: "2026-01-01T00:00:00Z" });
  await show(<AmendmentForm scope="s" categories={["other"]} from={from} />);
  const [original, amended] = root.querySelectorAll("textarea");
  expect(original?.readOnly).toBe(true);
  await typeInto(amended, '{"a":2}');
  await submit();
  await press("Send amendment");
  await vi.waitFor(() => expect(root.textContent).toContain("Amendment recorded"));
  await press("Another amendment");
  expect(root.querySelector("h2")?.textContent).toBe("Original and amended record");
  expect(root.querySelector("textarea")?.readOnly).toBe(false);
  expect(root.textContent).not.toContain("As recorded in");
});
