import { act } from "preact/test-utils";
import { expect, test, vi } from "vitest";
import type { QueryRecords } from "@/pages/audit/paging.ts";
import { RecordPanel } from "@/pages/audit/RecordPanel.tsx";
import { parseRecordId } from "@/proof/record.ts";
import { session } from "@/session/index.ts";
import { signIn } from "../amendments/pages.ts";
import { mountRoot, root, show } from "../mounted.ts";
import { proofs } from "../proof/vectors.ts";

/** Answers from the published chain without record 7. */
const ask: QueryRecords = async ({ fromSequence = 1, toSequence = 99, limit }) => {
  const found = proofs.records.filter((record) => {
    const sequence = parseRecordId(record.RecordID) ?? 0;
    return sequence !== 7 && sequence >= fromSequence && sequence <= toSequence;
  });
  return { records: found.reverse().slice(0, limit), hasMore: found.length > limit };
};

mountRoot();

test("a removed record is an alarm in its place, and in the place of the record before it", async () => {
  signIn();
  vi.spyOn(session.api, "get").mockResolvedValue(null);
  const go = vi.fn();
  const chain = { target: "DomainEvents", scopeKey: proofs.scopeKey } as const;
  const open = (sequence: number) =>
    show(
      <RecordPanel chain={chain} sequence={sequence} ask={ask} onGo={go} onClose={go} onVerified={() => undefined} />,
    );
  await open(6);
  await vi.waitFor(() => expect(root.querySelector("[role=alert]")?.textContent).toContain("000000000007 is missing"));
  expect(root.textContent).not.toContain("this is the newest");
  await act(() => root.querySelector<HTMLElement>("[aria-label='Newer record']")?.click());
  expect(go).toHaveBeenCalledExactlyOnceWith(7);
  await open(7);
  await vi.waitFor(() => expect(root.querySelector("[role=alert]")?.textContent).toContain("This record is missing."));
});
