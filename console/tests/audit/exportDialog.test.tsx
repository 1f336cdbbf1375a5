import { act } from "preact/test-utils";
import { beforeEach, expect, test, vi } from "vitest";
import { ExportDialog } from "@/pages/audit/ExportDialog.tsx";
import { checkExport } from "@/pages/audit/exportFile.ts";
import type { QueryRecords } from "@/pages/audit/paging.ts";
import type { JsonObject } from "@/proof/record.ts";
import { session } from "@/session/index.ts";
import { mountRoot, press, root, show } from "../mounted.ts";
import { proofs } from "../proof/vectors.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;

/** Number of records that the newest checkpoint covers; the chain has 13. */
let size = 13;

const ask: QueryRecords = async () => ({ records: proofs.records.slice(-1), hasMore: true });

mountRoot();

beforeEach(() => {
  size = 13;
});

async function exportFile(
  headers: Record<string, string>,
  records: readonly JsonObject[] = [],
  { format = "json", filters = {} } = {},
): Promise<void> {
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockReturnValue();
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response(JSON.stringify(records), { headers }));
  vi.spyOn(session.api, "get").mockImplementation(async () => ({ size }) as never);
  await show(<ExportDialog chain={CHAIN} ask={ask} filters={filters} onClose={() => undefined} />);
  const field = root.querySelector("select");
  if (field) field.value = format;
  act(() => {
    field?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await press("Export");
  const isPrefix = headers["x-provenance-has-more"] === "true";
  const text = isPrefix ? "The file is incomplete" : "The file contains all matching records.";
  await vi.waitFor(() => expect(root.textContent).toContain(text));
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
  expect(findWarning()).toContain("Some records were altered");
  expect(findWarning()).toContain("in the store: 000000000004.");
  const gap = proofs.records.filter((_, index) => index !== 0 && index !== 6);
  await exportFile(WHOLE, gap);
  expect(findWarning()).toContain("missing record: 000000000002, 000000000006, 000000000008.");
  expect(root.textContent).not.toContain("Some records were altered");
  await exportFile(WHOLE, gap, { filters: { entityType: "Batch" } });
  expect(findWarning()).toBeUndefined();
});

const UNCHECKED = "did not check whether the records were altered";

test("an export as CSV states that it was not checked", async () => {
  for (const headers of [WHOLE, { "x-provenance-has-more": "true" }]) {
    await exportFile(headers, [], { format: "csv" });
    expect(root.textContent).toContain(UNCHECKED);
    await exportFile(headers, [], { format: "json" });
    expect(root.textContent).not.toContain(UNCHECKED);
  }
});

test("an export of a whole chain warns if a checkpoint covers more records than the chain has", async () => {
  size = 14;
  await exportFile(WHOLE, proofs.records);
  expect(findWarning()).toContain("The checkpoint covers 14 records");
  await exportFile(WHOLE, proofs.records, { filters: { entityType: "Batch" } });
  expect(findWarning()).toBeUndefined();
  await exportFile({ "x-provenance-has-more": "true" }, proofs.records);
  expect(findWarning()).toBeUndefined();
});

test("the file of a stopped or failed check is reported as not checked, with its damaged records", async () => {
  const headers = { ...WHOLE, "x-provenance-damaged": "000000000003" };
  let stop: (error: Error) => void = () => undefined;
  const text = vi.spyOn(Blob.prototype, "text").mockReturnValue(new Promise((_, reject) => (stop = reject)));
  const done = exportFile(headers, proofs.records);
  await vi.waitFor(() => expect(text).toHaveBeenCalled());
  await press("Stop");
  stop(new DOMException("stopped", "AbortError"));
  await done;
  expect(findWarning()).toContain("Damaged in the store: 000000000003.");
  expect(root.textContent).toContain(UNCHECKED);
  text.mockRejectedValue(new Error("too large"));
  await exportFile(headers, proofs.records);
  expect(root.textContent).toContain(UNCHECKED);
  expect(root.textContent).toContain("000000000003");
});

test("the check of an export ends when the user stops it", async () => {
  const file = new Blob([JSON.stringify(proofs.records)]);
  await expect(checkExport(file, "json", false, AbortSignal.abort())).rejects.toThrow("abort");
});
