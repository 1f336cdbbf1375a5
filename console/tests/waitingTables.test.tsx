import { expect, test, vi } from "vitest";
import { AmendmentRows } from "../src/pages/inbox/WaitingTables.tsx";
import type { PendingAmendment } from "../src/pages/inbox/waiting.ts";
import { makeAmendment } from "./amendments/pages.ts";
import { mountRoot, root, show } from "./mounted.ts";

mountRoot();

test("the inbox marks an amendment that was altered in the store", async () => {
  const altered = { ...makeAmendment(2), ReasonText: "forged" };
  const rows = [makeAmendment(1), altered] as unknown as PendingAmendment[];
  await show(<AmendmentRows label="Pending" rows={rows} />);
  await vi.waitFor(() => expect(root.textContent).toContain("altered"));
  const marked = [...root.querySelectorAll("[role=row]")].map((row) => row.textContent?.includes("altered"));
  expect(marked).toEqual([false, false, true]);
});
