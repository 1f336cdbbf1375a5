import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import { ExportDialog } from "@/pages/audit/ExportDialog.tsx";
import { checkExport } from "@/pages/audit/exportFile.ts";
import type { JsonObject } from "@/proof/record.ts";
import { session } from "@/session/index.ts";
import { mountRoot, press, root, show } from "../mounted.ts";
import { proofs } from "../proof/vectors.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;

mountRoot();

async function exportFile(
  headers: Record<string, string>,
  records: readonly JsonObject[] = [],
  { format = "json", filters = {} } = {},
): Promise<void> {
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockReturnValue();
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response(JSON.stringify(records), { headers }));
  await show(<ExportDialog chain={CHAIN} filters={filters} onClose={() => undefined} />);
  const field = root.querySelector("select");
  if (field) field.value = format;
  act(() => {
    field?.dispatchEvent(new Event("change", { bubbles: true }));
  });
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

const WHOLE = { "x-provenance-has-more": "false" };
const findWarning = () => root.querySelector("[role=alert]")?.textContent;

test("altered records of an export and the neighbours of a missing one are named", async () => {
  await exportFile(WHOLE, proofs.records);
  expect(findWarning()).toBeUndefined();
  const altered = proofs.records.map((record, index) => (index === 3 ? { ...record, EntityID: "forged" } : record));
  await exportFile(WHOLE, altered);
  expect(findWarning()).toContain("missing record: 000000000004.");
  const gap = proofs.records.filter((_, index) => index !== 0 && index !== 6);
  await exportFile(WHOLE, gap);
  expect(findWarning()).toContain("missing record: 000000000002, 000000000006, 000000000008.");
  await exportFile(WHOLE, gap, { filters: { entityType: "Batch" } });
  expect(findWarning()).toBeUndefined();
});

test("an export as CSV states that it was not checked", async () => {
  await exportFile(WHOLE, [], { format: "csv" });
  expect(root.textContent).toContain("did not check whether they were altered");
  await exportFile(WHOLE, [], { format: "json" });
  expect(root.textContent).not.toContain("did not check whether they were altered");
});

test("the check of an export ends when the user stops it", async () => {
  const file = new Blob([JSON.stringify(proofs.records)]);
  await expect(checkExport(file, "json", false, AbortSignal.abort())).rejects.toThrow("abort");
});
