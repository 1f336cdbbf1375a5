import { expect, test } from "vitest";
import { buildRecordLink } from "../src/pages/queries/detail/queryHistory.ts";

test("a record of a query's history is opened in the configuration's chain", () => {
  expect(buildRecordLink({ RecordID: "000000000032" })).toBe("#/audit/PlatformConfig?record=32");
});
