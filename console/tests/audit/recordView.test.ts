import { describe, expect, it } from "vitest";
import { buildExportName, buildFetchCommand } from "@/pages/audit/exportFile.ts";
import { toRecordView } from "@/pages/audit/recordView.ts";

describe("a record as the page shows it", () => {
  it("is an event", () => {
    const event = {
      RecordID: "000000000007",
      Timestamp: "t",
      UserID: "u",
      ActionType: "a",
      EntityType: "e",
      EntityID: "i",
    };
    expect(toRecordView({ ...event, AfterState: { x: 1 } })).toMatchObject({
      ...{ sequence: 7, time: "t", who: "u", action: "a", entityType: "e", entityId: "i" },
      ...{ before: null, after: { x: 1 }, damaged: false },
    });
  });

  it("is an amendment, with its states", () => {
    const made = {
      AmendedBy: "u",
      AmendedAt: "t",
      Status: "pending",
      OriginalRecord: { x: 1 },
      AmendedRecord: { x: 2 },
    };
    expect(toRecordView({ RecordID: "000000000001", ...made })).toMatchObject({
      ...{ who: "u", time: "t", action: "amendment, pending", before: { x: 1 }, after: { x: 2 } },
    });
  });

  it("is a decision", () => {
    const decided = {
      AmendmentID: "000000000001",
      Status: "rejected",
      RejectedBy: "u",
      RejectedAt: "t",
      Meaning: "rejection",
    };
    expect(toRecordView(decided)).toMatchObject({
      who: "u",
      time: "t",
      action: "rejection",
      before: null,
      after: null,
    });
  });

  it("is what stands in a damaged one's place", () => {
    expect(toRecordView({ Content: "x", Damaged: true, RecordID: "000000000003", Hash: "h" })).toMatchObject({
      ...{ damaged: true, sequence: 3, hash: "h", who: "" },
    });
  });
});

describe("an export", () => {
  const chain = { target: "DomainEvents", scopeKey: "batch/7 +ü's" } as const;

  it("has a name that file systems take", () => {
    expect(buildExportName(chain, "csv")).toBe("provenance-DomainEvents-batch_7____s.csv");
    expect(buildExportName({ target: "PlatformConfig", scopeKey: "" }, "json")).toBe("provenance-PlatformConfig.json");
  });

  it("that is a prefix tells the command for the whole chain, quoted for the shell", () => {
    expect(buildFetchCommand("https://host", chain)).toBe(
      "OI_TOKEN=… oi audit fetch https://host --target DomainEvents " +
        "--scope 'batch/7 +ü'\\''s' --out provenance-DomainEvents-batch_7____s.json",
    );
    expect(buildFetchCommand("https://host", { target: "AccessControl", scopeKey: "" })).not.toContain("--scope");
  });
});
