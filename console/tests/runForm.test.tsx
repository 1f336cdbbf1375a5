import { expect, test } from "vitest";
import type { QueryResult } from "../src/api/queries.ts";
import { buildAdHocCall, buildWarmCall } from "../src/pages/queries/run/queryCall.ts";
import { RunForm } from "../src/pages/queries/run/RunForm.tsx";
import { mountRoot, root, show } from "./mounted.ts";

mountRoot();

const EXTENT = { timeRange: "PT1H", from: "", to: "", limit: "" };
const ANSWER = {
  ...{ columns: [{ name: "n", type: "long" }], results: [{ n: 1 }], rowCount: 1, truncated: false },
  ...{ executionTimeMs: 1, executedAt: "2026-01-01T00:00:00Z", fromCache: false },
  governance: { queryApprovedBy: null, queryApprovedAt: null },
} as unknown as QueryResult;
const NOTE = "The inputs have changed since this run";

test.each([
  ["a parameter", buildWarmCall("q", [["p.low", "1"]], EXTENT), buildWarmCall("q", [["p.low", "9"]], EXTENT)],
  ["a time range", buildWarmCall("q", [], EXTENT), buildWarmCall("q", [], { ...EXTENT, timeRange: "P1D" })],
  ["a text", buildAdHocCall("T", EXTENT), buildAdHocCall("T | take 1", EXTENT)],
])("a result states that it belongs to earlier inputs after a change of %s", async (_, asked, ask) => {
  const run = { answer: ANSWER, asked, error: undefined, busy: false, start: () => {}, stop: () => {} };
  const showForm = (now: typeof ask) => show(<RunForm run={run} ask={now} onRun={() => {}} children="" />);
  await showForm({ ...asked });
  expect(root.textContent).not.toContain(NOTE);
  await showForm(ask);
  expect(root.textContent).toContain(NOTE);
});
