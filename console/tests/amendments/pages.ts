// Records, replies and a signed-in user for tests of the amendment pages.
import { createHash } from "node:crypto";
import { vi } from "vitest";
import type { ApiReply } from "../../src/api/client.ts";
import { formatRecordId, toCanonicalText } from "../../src/proof/record.ts";
import { session } from "../../src/session/index.ts";

const AMENDMENT_RIGHTS = ["Workspace.Amendment.Read", "Workspace.Amendment.Create", "Workspace.Amendment.Approve"];

/** Signs in a user who may read, make and approve amendments, or has other rights. */
export function signIn(accessRights: readonly string[] = AMENDMENT_RIGHTS): void {
  const who = { principal: "me", name: "Me", workspace: "w", accessRights, via: "jwt", expiresAt: null };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
}

export function makeReply<T>(data: T): ApiReply<T> {
  return { status: 200, headers: new Headers(), data };
}

/** Returns a record with its correct hash. */
export function addHash(record: Record<string, unknown>): Record<string, unknown> {
  return { ...record, Hash: createHash("sha256").update(toCanonicalText(record)).digest("hex") };
}

export function makeAmendment(sequence: number, Status = "pending"): Record<string, unknown> {
  const entity = { ScopeKey: "s", EntityType: "Pump", EntityID: "p" };
  const content = { OriginalRecord: { a: 1 }, AmendedRecord: { a: 2 }, ChangedFields: ["a"] };
  const reason = { ReasonCategory: "other", ReasonText: "", AmendedBy: "ann@t", AmendedAt: "2026-01-01T00:00:00Z" };
  return addHash({ RecordID: formatRecordId(sequence), Status, ...entity, ...content, ...reason });
}
