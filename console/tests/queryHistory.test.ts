import { expect, test } from "vitest";
import { recordLink } from "../src/pages/queries/detail/historyOf.ts";

test("a record of a query's history is opened in the configuration's chain", () => {
  expect(recordLink({ RecordID: "000000000032" })).toBe("#/audit/PlatformConfig?record=32");
});
