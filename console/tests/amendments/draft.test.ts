import { describe, expect, it } from "vitest";
import type { Amendment, Transition } from "@/api/amendments.ts";
import { createDraft, validateDraft } from "@/pages/amendments/draft.ts";
import { computeStatuses, explainDenial, toEntry } from "@/pages/amendments/entries.ts";
import { parsePlace } from "@/pages/amendments/place.ts";
import { toRecordView } from "@/pages/audit/recordView.ts";
import { parseHash } from "@/router/route.ts";

const EVENT = {
  RecordID: "000000000003",
  EntityType: "Batch",
  EntityID: "B-1",
  BeforeState: { ph: 7 },
  AfterState: { ph: 8 },
};

const MADE: Amendment = {
  ...{ RecordID: "000000000001", ScopeKey: "s", EntityType: "Batch", EntityID: "B-1", Status: "pending" },
  ...{ OriginalRecord: { ph: 7 }, AmendedRecord: { ph: 8 }, ChangedFields: ["ph"] },
  ...{ ReasonCategory: "other", ReasonText: "", AmendedBy: "u", AmendedAt: "t", PreviousHash: "", Hash: "" },
};

const DECIDED: Transition = {
  ...{ RecordID: "000000000002", ScopeKey: "s", EntityType: "Batch", EntityID: "B-1", Status: "rejected" },
  ...{
    AmendmentID: "000000000001",
    RejectedBy: "v",
    RejectedAt: "t2",
    Meaning: "rejection",
    PreviousHash: "",
    Hash: "",
  },
};

describe("an amendment's form", () => {
  it("begins with the state that a record left", () => {
    const draft = createDraft(toRecordView(EVENT), ["other"]);
    expect([draft.EntityID, JSON.parse(draft.OriginalRecord)]).toEqual(["B-1", { ph: 8 }]);
    expect(draft.AmendedRecord).toBe(draft.OriginalRecord);
    expect(JSON.parse(createDraft(toRecordView({ ...EVENT, AfterState: undefined }), []).OriginalRecord)).toEqual({
      ph: 7,
    });
    expect(createDraft(null, ["other"]).OriginalRecord).toBe("{}");
  });

  it("gives an amendment with the fields that differ", () => {
    const draft = { ...createDraft(toRecordView(EVENT), ["other"]), AmendedRecord: '{"ph": 8.5, "note": "x"}' };
    const { amendment, wrong } = validateDraft(draft);
    expect(wrong).toEqual({});
    expect(amendment).toMatchObject({ ChangedFields: ["ph", "note"], AmendedRecord: { ph: 8.5, note: "x" } });
  });

  it("says what is wrong with it, field by field", () => {
    const wrong = validateDraft({ ...createDraft(null, []), OriginalRecord: "[", AmendedRecord: "5" }).wrong;
    expect(Object.keys(wrong)).toEqual(["EntityType", "EntityID", "OriginalRecord", "AmendedRecord", "ReasonCategory"]);
    expect(validateDraft(createDraft(toRecordView(EVENT), ["other"])).wrong).toEqual({
      AmendedRecord: "The amended record equals the original.",
    });
  });
});

describe("where amendments stand", () => {
  it("is what was decided since", () => {
    expect([...computeStatuses([MADE, DECIDED, { ...MADE, RecordID: "000000000003" }])]).toEqual([
      ["000000000001", "rejected"],
      ["000000000003", "pending"],
    ]);
  });

  it("is told with who and when, for decisions too", () => {
    expect(toEntry(MADE)).toMatchObject({ who: "u", at: "t", decision: undefined, damaged: false });
    expect(toEntry(DECIDED)).toMatchObject({ who: "v", at: "t2", amendment: undefined });
    expect(toEntry({ Content: "x", Damaged: true, RecordID: "000000000009" } as unknown as Amendment).damaged).toBe(
      true,
    );
  });

  it("is decided by somebody else than the author, with the right and a name", () => {
    expect(explainDenial("a@x", "b@x", true)).toBeUndefined();
    expect(explainDenial("A@x", "a@X", true)).toContain("another person");
    expect(explainDenial("a@x", "b@x", false)).toContain("Workspace.Amendment.Approve");
    expect(explainDenial("a@x", null, true)).toContain("no user identity");
  });
});

describe("the address of the amendments page", () => {
  it("names scope, view, entity and record", () => {
    expect(parsePlace(parseHash("#/amendments"))).toMatchObject({ scope: "", view: "queue" });
    expect(parsePlace(parseHash("#/amendments/a%2Fb/entity/B%201"))).toMatchObject({
      scope: "a/b",
      view: "entity",
      entity: "B 1",
    });
    expect(parsePlace(parseHash("#/amendments/s/new?record=7"))).toMatchObject({ view: "new", record: 7 });
    expect(parsePlace(parseHash("#/amendments/s/nonsense?record=-1"))).toMatchObject({
      view: "queue",
      record: undefined,
    });
  });
});
