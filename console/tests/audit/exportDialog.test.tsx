import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ExportDialog } from "@/pages/audit/ExportDialog.tsx";
import { session } from "@/session/index.ts";

const CHAIN = { target: "DomainEvents", scopeKey: "line-1" } as const;

let root: HTMLElement;

beforeEach(() => {
  HTMLDialogElement.prototype.showModal ??= () => undefined;
  root = document.body.appendChild(document.createElement("div"));
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
});

async function exportFile(headers: Record<string, string>): Promise<void> {
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockReturnValue();
  vi.spyOn(session.api, "fetch").mockResolvedValue(new Response("[]", { headers }));
  await act(() => render(<ExportDialog chain={CHAIN} filters={{}} onClose={() => undefined} />, root));
  await act(() => [...root.querySelectorAll("button")].find((button) => button.textContent === "Export")?.click());
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
