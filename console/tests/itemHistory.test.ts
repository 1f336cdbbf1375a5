import { expect, test } from "vitest";
import { buildRecordLink } from "../src/history/itemHistory.ts";

test("a record of an item's history is opened in its chain", () => {
  expect(buildRecordLink("PlatformConfig", { RecordID: "000000000032" })).toBe("#/audit/PlatformConfig?record=32");
});
