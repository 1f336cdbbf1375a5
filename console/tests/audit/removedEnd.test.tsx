import { beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "@/api/problem.ts";
import type { QueryRecords } from "@/pages/audit/paging.ts";
import { RecordPanel } from "@/pages/audit/RecordPanel.tsx";
import { RecordTable } from "@/pages/audit/RecordTable.tsx";
import { toRecordView } from "@/pages/audit/recordView.ts";
import { findRemovedEnd } from "@/pages/audit/removedEnd.ts";
import { parseRecordId } from "@/proof/record.ts";
import { session } from "@/session/index.ts";
import { signIn } from "../amendments/pages.ts";
import { mountRoot, root, show } from "../mounted.ts";
import { proofs } from "../proof/vectors.ts";

const chain = { target: "DomainEvents", scopeKey: proofs.scopeKey } as const;
const ignore = () => undefined;
const findAlarm = () => root.querySelector("[role=alert]")?.textContent;

/** Number of records that the chain has, and that the newest checkpoint covers. */
let [length, size] = [11, 13];

const ask: QueryRecords = async ({ fromSequence = 1, toSequence = 99, limit }) => {
  const found = proofs.records.slice(0, length).filter((record) => {
    const sequence = parseRecordId(record.RecordID) ?? 0;
    return sequence >= fromSequence && sequence <= toSequence;
  });
  return { records: found.reverse().slice(0, limit), hasMore: found.length > limit };
};

const buildError = (code: string) => new ApiError({ status: 503, code, detail: "refused" });

mountRoot();

beforeEach(() => {
  [length, size] = [11, 13];
  signIn();
  vi.spyOn(session.api, "get").mockImplementation(async () => ({ size }) as never);
});

const open = (sequence: number) =>
  show(<RecordPanel chain={chain} sequence={sequence} ask={ask} onGo={ignore} onClose={ignore} onVerified={ignore} />);

async function list(): Promise<void> {
  const rows = proofs.records.slice(0, 11).map(toRecordView).reverse();
  const listing = { top: 11, low: 1, rows, hasMore: false };
  const newer = { count: 0, more: false };
  const listed = { ask, listing, error: undefined, loading: false, newer, more: ignore, refresh: ignore };
  const place = { chain, filters: {}, at: undefined, record: undefined };
  await show(<RecordTable place={place} listed={listed} onOpen={ignore} onNewest={ignore} />);
}

test("a record after the end of the chain that a checkpoint covers is missing", async () => {
  await open(11);
  await vi.waitFor(() => expect(findAlarm()).toContain("000000000012 is missing"));
  expect(findAlarm()).toContain("The next record was removed or its RecordID altered.");
  expect(root.textContent).not.toContain("this is the newest");
  await open(12);
  await vi.waitFor(() => expect(findAlarm()).toContain("This record is missing."));
  size = 11;
  await open(11);
  await vi.waitFor(() => expect(root.textContent).toContain("this is the newest"));
});

test("the list of a chain warns if a checkpoint covers more records than the chain has", async () => {
  await list();
  await vi.waitFor(() => expect(findAlarm()).toContain("covers 13 records"));
});

test("a checkpoint that is newer than the list is no sign of removed records", async () => {
  const { signal } = new AbortController();
  expect(await findRemovedEnd(ask, chain, 11, signal)).toBe(13);
  length = 13;
  expect(await findRemovedEnd(ask, chain, 11, signal)).toBe(0);
});

test("a chain is not called complete if its newest checkpoint cannot be read", async () => {
  vi.spyOn(session.api, "get").mockRejectedValue(buildError("CHECKPOINTS_UNAVAILABLE"));
  await list();
  await vi.waitFor(() => expect(root.textContent).toContain("The end of this chain was not checked."));
  await open(11);
  await vi.waitFor(() => expect(root.textContent).toContain("none found, but not checked"));
  await open(12);
  await vi.waitFor(() => expect(root.textContent).toContain("whether it was removed, could not be read"));
  vi.spyOn(session.api, "get").mockRejectedValue(buildError("CHECKPOINT_NOT_FOUND"));
  await list();
  await open(11);
  await vi.waitFor(() => expect(root.textContent).toContain("this is the newest"));
});
