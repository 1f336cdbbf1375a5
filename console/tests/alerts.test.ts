import { expect, test, vi } from "vitest";
import type { Alert, AlertRule } from "../src/api/alerts.ts";
import type { Client } from "../src/api/client.ts";
import { parseExactDefinitions } from "../src/api/exactNumbers.ts";
import { diff } from "../src/components/diff.ts";
import { fetchActiveAlerts, formatLabels } from "../src/pages/alerts/activeAlerts.ts";
import {
  buildPreview,
  countFirings,
  evaluateRows,
  fetchPreview,
  parseDuration,
  STEPS,
} from "../src/pages/alerts/preview.ts";
import { NEW_RULE, RULE_FORM } from "../src/pages/alerts/ruleDraft.ts";
import { parseExactly } from "../src/pages/queries/run/exactJson.ts";

const ABOVE = { column: "level", operator: "gt", value: 5 } as const;
const SIGNAL = new AbortController().signal;

test("the most severe firing alert is first, and pending ones are last", async () => {
  const pages: Record<string, Partial<Alert>[]> = {
    firing: [
      { id: "info", severity: "info" },
      { id: "critical", severity: "critical" },
    ],
    pending: [{ id: "pending", severity: "critical" }],
  };
  const client = {
    get: (_: string, { query }: { query: { state: string } }) =>
      Promise.resolve({ alerts: pages[query.state], ...(query.state === "firing" ? { cursor: "x" } : {}) }),
  } as unknown as Client;
  const active = await fetchActiveAlerts(client, SIGNAL);
  expect(active.alerts.map(({ id }) => id)).toEqual(["critical", "info", "pending"]);
  expect([active.firing, active.more]).toEqual([2, true]);
});

test("labels are names with values", () => {
  expect(formatLabels({ DeviceId: "pump-1", line: null })).toBe("DeviceId: pump-1, line: –");
  expect(formatLabels({})).toBe("");
});

test.each([
  ["PT15S", 15],
  ["P1DT2H", 93_600],
  ["P2W", 1_209_600],
  ["PT0.5S", 0.5],
])("the duration %s has %d seconds", (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

test("only numbers meet a comparison, and the first matching row counts", () => {
  const rows = [{ level: null }, { level: "9" }, { level: 7 }, { level: 8 }];
  expect(evaluateRows(ABOVE, [], rows)).toEqual(new Map([["", { value: 7, matches: true }]]));
  expect(evaluateRows(ABOVE, [], [{ level: 3 }])).toEqual(new Map([["", { value: 3, matches: false }]]));
});

test("each combination of the grouped columns is a group", () => {
  const rows = [
    { device: "a", level: 9 },
    { device: "b", level: 1 },
  ];
  expect([...evaluateRows(ABOVE, ["device"], rows)].map(([key, { matches }]) => [key, matches])).toEqual([
    ["device: a", true],
    ["device: b", false],
  ]);
  expect(evaluateRows({ rows: "any" }, ["device"], rows).size).toBe(2);
});

test("conditions on rows need some or no row", () => {
  expect(evaluateRows({ rows: "none" }, [], []).get("")).toEqual({ value: 0, matches: true });
  expect(evaluateRows({ rows: "any" }, [], []).get("")).toEqual({ value: 0, matches: false });
});

test("an alert fires once for each period that is long enough", () => {
  const steps = [true, true, false, true, true, true].map((matches) => new Map([["", { value: 1, matches }]]));
  const times = steps.map((_, index) => index * 60);
  expect(countFirings(times, steps, 0)).toBe(2);
  expect(countFirings(times, steps, 120)).toBe(1);
  expect(countFirings(times, steps, 600)).toBe(0);
});

test("a preview shows the groups that matched most often", () => {
  const group = (matches: boolean) => ({ value: 1, matches });
  const steps = [
    new Map([
      ["quiet", group(false)],
      ["loud", group(true)],
    ]),
    new Map([["loud", group(true)]]),
  ];
  const preview = buildPreview([0, 60], steps, 0);
  expect(preview.lines.map(({ label, values }) => [label, values])).toEqual([
    ["loud", [1, 1]],
    ["quiet", [1, null]],
  ]);
  expect([preview.fired, preview.groups]).toEqual([1, 2]);
});

test("a preview executes the query for past times up to now", async () => {
  const asked: Record<string, unknown>[] = [];
  const client = {
    get: (_: string, { query }: { query: Record<string, unknown> }) => {
      asked.push(query);
      return Promise.resolve({ results: [{ level: "9.5" }], columns: [{ name: "level", type: "decimal" }] });
    },
  } as unknown as Client;
  const draft = { ...NEW_RULE, query: "q", parameters: '{"device": "a", "n": 1}', column: "level", value: "5" };
  const preview = await fetchPreview(client, draft, 3600, SIGNAL, 7200);
  expect([preview.fired, preview.times.length, preview.times.at(-1)]).toEqual([1, STEPS, 7200]);
  expect(asked).toHaveLength(STEPS);
  const last = asked.find(({ to }) => to === "1970-01-01T02:00:00.000Z");
  expect(last).toMatchObject({ from: "1970-01-01T01:45:00.000Z", "p.device": "a", "p.n": "1" });
});

test("a preview reads whole numbers beyond 2^53 exactly, and compares these and decimals as numbers", async () => {
  const columns = [
    { name: "tag", type: "long" },
    { name: "level", type: "decimal" },
  ];
  const results = [
    { tag: "9007199254740992", level: "9.5" },
    { tag: "9007199254740993", level: "1" },
  ];
  const get = vi.fn().mockResolvedValue({ columns, results, truncated: false });
  const draft = { ...NEW_RULE, query: "q", column: "level", value: "5", groupBy: "tag" };
  const preview = await fetchPreview({ get } as unknown as Client, draft, 3600, SIGNAL);
  expect(get.mock.lastCall?.[1]).toMatchObject({ parse: parseExactly });
  expect([preview.groups, preview.fired]).toEqual([2, 1]);
  const byTag = await fetchPreview({ get } as unknown as Client, { ...draft, column: "tag" }, 3600, SIGNAL);
  expect(byTag.fired).toBe(2);
});

test.each([
  [{ columns: [{ name: "other", type: "real" }] }, "no column"],
  [{ columns: [{ name: "level", type: "real" }], truncated: true }, "more than 0 rows"],
])("a preview fails where the rule would be in error: %j", async (result, reason) => {
  const client = { get: () => Promise.resolve({ results: [], truncated: false, ...result }) } as unknown as Client;
  const draft = { ...NEW_RULE, query: "q", column: "level", value: "5" };
  await expect(fetchPreview(client, draft, 3600, SIGNAL)).rejects.toThrow(reason);
});

test("a stored rule survives the form", () => {
  const threshold = {
    lookup: "hot",
    name: "Hot",
    description: null,
    severity: "critical",
    enabled: false,
    surface: "hall",
    kind: "threshold",
    every: "PT15S",
    for: "PT1M",
    runbookUrl: null,
    query: "levels",
    parameters: { device: "a" },
    timeRange: null,
    condition: ABOVE,
    groupBy: ["device", "line"],
  } as unknown as AlertRule;
  const { lookup: _, ...body } = threshold;
  expect(RULE_FORM.toBody(RULE_FORM.toDraft(threshold))).toEqual(body);
  const absence = { ...threshold, kind: "absence", connections: ["press"], after: "PT5M" } as AlertRule;
  expect(RULE_FORM.toBody(RULE_FORM.toDraft(absence))).toMatchObject({ connections: ["press"], after: "PT5M" });
  expect(RULE_FORM.toBody(RULE_FORM.toDraft(absence))).not.toHaveProperty("query");
});

test("a rule keeps the digits of whole numbers beyond 2^53 in the form and, in new browsers, in the body", () => {
  const numbers = { parameters: { id: "9007199254740993" }, condition: { ...ABOVE, value: "9007199254740993" } };
  const rule = { kind: "threshold", every: "PT1M", for: "PT0S", ...numbers } as unknown as AlertRule;
  expect(RULE_FORM.parse).toBe(parseExactDefinitions);
  expect(RULE_FORM.toDraft(rule).value).toBe("9007199254740993");
  vi.stubGlobal("JSON", { ...copyJson(), rawJSON: (text: string) => `raw ${text}` });
  const body = RULE_FORM.toBody(RULE_FORM.toDraft(rule));
  expect(body).toMatchObject({ parameters: numbers.parameters, condition: { value: "raw 9007199254740993" } });
  expect(RULE_FORM.toBody({ ...RULE_FORM.toDraft(rule), value: " 5 " })).toMatchObject({ condition: { value: 5 } });
});

/** Returns the functions of JSON, which are not enumerable. */
function copyJson(): Pick<JSON, "parse" | "stringify"> {
  return { parse: JSON.parse, stringify: JSON.stringify };
}

test("a number with all digits is one field of a comparison, not an object", () => {
  const [before, after] = [{ rawJSON: "9007199254740993" }, { rawJSON: "9007199254740995" }];
  vi.stubGlobal("JSON", { ...copyJson(), isRawJSON: (value: unknown) => value === before || value === after });
  expect(diff({ value: before }, { value: after }).map(({ path }) => path)).toEqual([["value"]]);
});

test("the form names what is missing", () => {
  const found = RULE_FORM.check({ ...NEW_RULE, every: "1m", parameters: "[]" }, true);
  const names = Object.entries(found).filter(([, message]) => message !== undefined);
  expect(names.map(([name]) => name)).toEqual([
    "lookup",
    "name",
    "surface",
    "every",
    "query",
    "parameters",
    "condition.column",
    "condition.value",
  ]);
  const silent = RULE_FORM.check({ ...NEW_RULE, kind: "absence", after: "" }, true);
  expect([silent.connections, silent.after].every(Boolean)).toBe(true);
});
