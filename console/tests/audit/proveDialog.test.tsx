import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ProveDialog } from "@/pages/audit/ProveDialog.tsx";
import { toRecordView } from "@/pages/audit/recordView.ts";
import { session } from "@/session/index.ts";
import { mountRoot, press, root, show, typeInto } from "../mounted.ts";
import { proofs } from "../proof/vectors.ts";

const CHAIN = { target: "DomainEvents", scopeKey: proofs.scopeKey } as const;
const RECORD = toRecordView(proofs.records[0] ?? {});

/** Number of records of the service's newest checkpoint. */
let size: number;

const findNote = (of: number) => proofs.checkpoints.find((one) => one.size === of)?.signedNote ?? "";

afterEach(() => sessionStorage.clear());

mountRoot();

beforeEach(async () => {
  size = 13;
  const who = {
    principal: "me",
    name: "Me",
    workspace: proofs.workspace,
    accessRights: [],
    via: "jwt",
    expiresAt: null,
  };
  const state = { state: "in", who, expiresAt: new Date(), number: 1 };
  vi.spyOn(session, "state", "get").mockReturnValue(state as never);
  vi.spyOn(session.api, "request").mockResolvedValue({ data: [RECORD.record], headers: new Headers() } as never);
  vi.spyOn(session.api, "fetch").mockImplementation(async () => new Response(proofs.verifierKey));
  vi.spyOn(session.api, "get").mockImplementation(async (path, { query } = {}) => {
    if (path.endsWith("checkpoint-key")) return { keys: [] } as never;
    if (path.endsWith("/checkpoint")) return { size, signedNote: findNote(size) } as never;
    const found = query?.sequence
      ? proofs.inclusion.find((one) => one.sequence === query.sequence && one.size === query.size)
      : proofs.growth.find((one) => one.from === query?.from && one.size === query?.size);
    return { hashes: found?.hashes ?? [] } as never;
  });
  await show(<ProveDialog chain={CHAIN} record={RECORD} onClose={() => undefined} />);
  await expectTitle("Proven");
});

const listTitles = () => [...root.querySelectorAll("strong, h3")].map((title) => title.textContent);
const expectTitle = (title: string) => vi.waitFor(() => expect(listTitles()).toContain(title));
const findField = (label: string) =>
  [...root.querySelectorAll("label")].find((one) => one.textContent?.includes(label))?.control as HTMLTextAreaElement;

test("an earlier checkpoint of the user does not replace the one that the tab saw before", async () => {
  size = 8;
  for (const note of [findNote(5), ""]) {
    await typeInto(findField("Earlier checkpoint"), note);
    await press("Prove again");
    await expectTitle("Not proven");
    await expectTitle("The checkpoint that this tab saw before failed");
  }
});

test("an outcome disappears while the user's own copies differ from those that were checked", async () => {
  for (const label of ["Verifier key", "Earlier checkpoint"]) {
    await typeInto(findField(label), "another");
    expect(listTitles()).toEqual([]);
    await typeInto(findField(label), " ");
    await expectTitle("Proven");
  }
  await typeInto(findField("Verifier key"), "another");
  await press("Prove again");
  await expectTitle("Not proven");
});
