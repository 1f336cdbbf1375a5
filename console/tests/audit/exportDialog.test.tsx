import { expect, test, vi } from "vitest";
import { ExportDialog } from "@/pages/audit/ExportDialog.tsx";
import { session } from "@/session/index.ts";
import { mountRoot, press, root, show } from "../mounted.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;

mountRoot();

async function exportFile(headers: Record<string, string>): Promise<void> {
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockReturnValue();
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response("[]", { headers }));
  await show(<ExportDialog chain={CHAIN} filters={{}} onClose={() => undefined} />);
  await press("Export");
  await vi.waitFor(() => expect(root.textContent).toContain("The file contains all matching records."));
}

test("damaged records of an export are named", async () => {
  await exportFile({ "x-provenance-has-more": "false", "x-provenance-damaged": "000000000003, 000000000007" });
  expect(root.querySelector("[role=alert]")?.textContent).toContain("000000000003, 000000000007");
});

test("an export without damaged records has no warning", async () => {
  await exportFile({ "x-provenance-has-more": "false" });
  expect(root.querySelector("[role=alert]")).toBeNull();
});
