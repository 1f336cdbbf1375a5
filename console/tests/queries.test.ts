import { expect, test } from "vitest";
import { ApiError } from "../src/api/problem.ts";
import type { QueryResult, WarmQuery } from "../src/api/queries.ts";
import { computeOffset, measureColumn, measureWord } from "../src/components/textPlaces.ts";
import { filterQueries, findAddressed } from "../src/pages/queries/catalogQueries.ts";
import { declareParameters } from "../src/pages/queries/detail/declaredParameters.ts";
import { toBody, toDraft } from "../src/pages/queries/edit/draft.ts";
import { toKqlError } from "../src/pages/queries/kqlErrors.ts";
import { assignRoles, buildLines } from "../src/pages/queries/run/chartData.ts";
import { parseExactly } from "../src/pages/queries/run/exactJson.ts";
import { parsePairs } from "../src/pages/queries/run/pairs.ts";
import { buildArguments } from "../src/pages/queries/run/parameters.ts";
import { buildRunHref, buildWarmCall } from "../src/pages/queries/run/queryCall.ts";
import { expandSeries } from "../src/pages/queries/run/seriesRows.ts";
import { parseHash } from "../src/router/route.ts";

const QUERY: WarmQuery = {
  lookup: "q",
  etag: '"q"',
  apiPath: null,
  name: "Q",
  description: null,
  surface: "cooling",
  kql: "T | take n",
  parameters: [
    { name: "n", type: "long", default: 5 },
    { name: "text", type: "string", default: "x" },
    { name: "must", type: "datetime" },
    { name: "none", type: "real", default: null },
  ],
  cacheSeconds: 0,
  schema: null,
  createdAt: "2026-01-05T08:00:00Z",
  updatedAt: "2026-01-05T08:00:00Z",
  editedBy: "editor",
  approval: null,
};

function answer(columns: QueryResult["columns"], results: QueryResult["results"]): QueryResult {
  const governance = { queryApprovedBy: null, queryApprovedAt: null };
  const rowCount = results.length;
  return { query: "q", executedAt: "", results, columns, rowCount, truncated: false, executionTimeMs: 1, governance };
}

test("a form sends what is no default; an emptied text is a value, an emptied number is none", () => {
  const given = (values: Record<string, string>) => buildArguments(QUERY.parameters, new Map(Object.entries(values)));
  expect(given({})).toEqual([]);
  expect(given({ n: "5", text: "", must: "2026-01-01", none: "" })).toEqual([
    ["p.text", ""],
    ["p.must", "2026-01-01"],
  ]);
  expect(given({ n: "9007199254740993" })).toEqual([["p.n", "9007199254740993"]]);
  expect(given({ n: "" })).toEqual([]);
});

test("the address of a run contains a text that was emptied, so the link does not run with the default", () => {
  const given = buildArguments(QUERY.parameters, new Map([["text", ""]]));
  const ask = buildWarmCall("q", given, { timeRange: "PT1H", from: "", to: "", limit: "" });
  const route = parseHash(buildRunHref("q", ask));
  expect([route.page, route.rest]).toEqual(["queries", ["q"]]);
  expect([...route.query]).toEqual([
    ["p.text", ""],
    ["timeRange", "PT1H"],
  ]);
});

test("the value of a typed pair may contain signs of equality, and its spaces count", () => {
  expect(parsePairs("a=1\n\n b = x=y \nc")).toEqual([
    ["p.a", "1"],
    ["p.b", " x=y "],
    ["p.c", ""],
  ]);
});

test("what is read into the form is what is sent, each default as JSON of its type", () => {
  expect(toBody(toDraft(QUERY))).toEqual({
    name: "Q",
    surface: "cooling",
    kql: "T | take n",
    cacheSeconds: 0,
    parameters: QUERY.parameters,
  });
  const long = { ...QUERY, parameters: [{ name: "n", type: "long", default: "9007199254740993" }] };
  expect(toBody(toDraft(long)).parameters).toEqual(long.parameters);
});

test("parameters are declared in KQL with their defaults, quoted where they are text", () => {
  const parameters = [...QUERY.parameters, { name: "q", type: "string", default: 'a"b' }];
  expect(declareParameters({ kql: "T", parameters })).toBe(
    'declare query_parameters(n:long = 5, text:string = "x", must:datetime = datetime(2026-01-01), none:real = 0.0, q:string = "a\\"b");\nT',
  );
});

test("queries are found by words of their name or text, by state and by surface", () => {
  const all = [QUERY, { ...QUERY, lookup: "r", approval: { approvedBy: "a", approvedAt: "" } }];
  const found = (text: string, state: "" | "draft" | "approved", surface = "") =>
    filterQueries(all, { text, state, surface }).map((query) => query.lookup);
  expect(found("TAKE q", "")).toEqual(["q", "r"]);
  expect(found("", "draft")).toEqual(["q"]);
  expect(found("", "approved", "cooling")).toEqual(["r"]);
  expect(found("nothing", "")).toEqual([]);
});

test("an error of the engine is told with its place, any other is none of the text's", () => {
  const error = (field: string, members: Record<string, unknown>) =>
    new ApiError({
      status: 400,
      code: "QUERY_INVALID",
      detail: "",
      errors: [{ field, message: "bad [line:position=2:3]" }],
      members,
    });
  expect(toKqlError(error("query", { line: 2, column: 3 }))).toEqual({ message: "bad", place: { line: 2, column: 3 } });
  expect(toKqlError(error("timeRange", {}))).toBeUndefined();
  expect(toKqlError(new Error("x"))).toBeUndefined();
});

test("a place is found in the text, past its end, behind tabs", () => {
  expect(computeOffset("ab\ncd", { line: 2, column: 2 })).toBe(4);
  expect(computeOffset("ab\ncd", { line: 9, column: 9 })).toBe(5);
  expect(measureColumn("\ta\tb", 4, 4)).toBe(8);
  expect(measureWord("where Nope ==", 7)).toBe(4);
  expect(measureWord("x", 5)).toBe(1);
});

const TIMED = [
  { name: "at", type: "datetime" },
  { name: "device", type: "string" },
  { name: "value", type: "real" },
  { name: "n", type: "long" },
];

test("whole numbers of 64 bits keep their digits where the browser tells them, others stay numbers", () => {
  const tells = "rawJSON" in JSON;
  const read = parseExactly<unknown>(
    '{"long": 9007199254740993, "small": 1, "real": 1234567890123456.5, "text": "1e300"}',
  );
  expect(read).toEqual({
    long: tells ? "9007199254740993" : 9007199254740992,
    small: 1,
    real: 1234567890123456.5,
    text: "1e300",
  });
});

test("a time, numbers and names make lines; measurements are drawn before counts", () => {
  const rows = [
    { at: "2026-01-01T00:01:00Z", device: "b", value: 2, n: 1 },
    { at: "2026-01-01T00:00:00Z", device: "a", value: 1, n: 1 },
    { at: "2026-01-01T00:01:00Z", device: "a", value: null, n: 1 },
  ];
  const roles = assignRoles(TIMED);
  expect(roles).toMatchObject({ time: "at", values: ["value", "n"], chosen: ["value"], names: ["device"] });
  const lines = buildLines(answer(TIMED, rows), roles as NonNullable<typeof roles>, ["value"]);
  expect(lines.times).toEqual([1767225600, 1767225660]);
  expect(lines.series).toEqual([
    { label: "a", values: [1, undefined] },
    { label: "b", values: [undefined, 2] },
  ]);
});

test("without a time or a number there is no chart", () => {
  expect(assignRoles([{ name: "value", type: "real" }])).toBeUndefined();
  expect(assignRoles([{ name: "at", type: "datetime" }])).toBeUndefined();
});

test("a dozen lines at most are drawn, and ids of single rows tell none apart", () => {
  const roles = assignRoles(TIMED) as NonNullable<ReturnType<typeof assignRoles>>;
  const rows = (names: number) =>
    Array.from({ length: 200 }, (_, index) => ({
      at: new Date(index * 1000).toISOString(),
      device: `d${index % names}`,
      value: index,
      n: 1,
    }));
  const many = buildLines(answer(TIMED, rows(40)), roles, ["value"]);
  expect([many.series.length, many.found]).toEqual([12, 40]);
  expect(buildLines(answer(TIMED, rows(200)), roles, ["value"]).series.map((line) => line.label)).toEqual(["value"]);
});

test("devices with two rows each are lines of their own", () => {
  const roles = assignRoles(TIMED) as NonNullable<ReturnType<typeof assignRoles>>;
  const rows = Array.from({ length: 40 }, (_, index) => ({
    at: new Date(Math.floor(index / 20) * 1000).toISOString(),
    device: `d${index % 20}`,
    value: index,
    n: 1,
  }));
  expect(buildLines(answer(TIMED, rows), roles, ["value"]).found).toBe(20);
});

test("values of one millisecond are points of their own", () => {
  const roles = assignRoles(TIMED) as NonNullable<ReturnType<typeof assignRoles>>;
  const times = ["00.001000Z", "00.0012Z", "00.001201Z", "00.001Z"].map((end) => `2026-01-01T00:00:${end}`);
  const rows = times.map((at, index) => ({ at, device: "a", value: index, n: 1 }));
  const { times: drawn, series } = buildLines(answer(TIMED, rows), roles, ["value"]);
  expect(drawn.map((time) => Math.round((time - 1767225600) * 1e6))).toEqual([1000, 1200, 1201]);
  expect(series).toEqual([{ label: "a", values: [3, 1, 2] }]);
});

test("series of a rendered query are expanded, and anomalies are marks of their line", () => {
  const rendered = { visualization: "anomalychart", xColumn: null, yColumns: null, anomalyColumns: ["flag"] };
  const times = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"];
  const columns = ["device:string", "t:dynamic", "v:dynamic", "flag:dynamic", "note:dynamic"].map((each) => {
    const [name = "", type = ""] = each.split(":");
    return { name, type };
  });
  const plain = answer(columns, [
    { device: "a", t: times, v: [1, 9, null], flag: [0, 1, 0], note: { k: 1 } },
    { device: "b", t: times.slice(0, 1), v: [5], flag: [0], note: null },
  ]);
  expect(expandSeries(plain)).toBe(plain);
  const expanded = expandSeries({ ...plain, visualization: rendered });
  expect(expanded.rowCount).toBe(4);
  expect(expanded.results[1]).toEqual({ device: "a", t: times[1], v: 9, flag: 1, note: { k: 1 } });
  const roles = assignRoles(expanded.columns, rendered);
  expect(roles).toMatchObject({ time: "t", chosen: ["v"], anomalies: ["flag"] });
  const lines = roles && buildLines(expanded, roles, roles.chosen);
  expect(lines?.series).toEqual([
    { label: "a", values: [1, 9] },
    { label: "b", values: [5, undefined] },
    { label: "a · flag", values: [null, 9], marks: true },
  ]);
});

test("the columns of render are the axis and the lines of a chart", () => {
  const columns = [
    { name: "t", type: "datetime" },
    { name: "u", type: "datetime" },
    { name: "v", type: "real" },
    { name: "w", type: "real" },
  ];
  const rendered = { visualization: "timechart", xColumn: "u", yColumns: ["w"], anomalyColumns: null };
  expect(assignRoles(columns, rendered)).toMatchObject({ time: "u", values: ["v", "w"], chosen: ["w"] });
});

test("a chart of anomalies first draws the columns before them, not their scores", () => {
  const rendered = { visualization: "anomalychart", xColumn: null, yColumns: null, anomalyColumns: ["flag"] };
  const build = (names: readonly string[]) => [
    { name: "t", type: "datetime" },
    ...names.map((name) => ({ name, type: "real" })),
  ];
  const roles = assignRoles(build(["v", "flag", "score", "baseline"]), rendered);
  expect(roles).toMatchObject({ values: ["v", "flag", "score", "baseline"], chosen: ["v"] });
  expect(assignRoles(build(["flag", "v", "w"]), rendered)).toMatchObject({ chosen: ["v", "w"] });
});

test("an address names a query by its lookup or by its API path", () => {
  const queries = [
    { ...QUERY, lookup: "cooling", apiPath: null },
    { ...QUERY, lookup: "cooling-5m", apiPath: "cooling/temperature" },
  ];
  const find = (path: string) => findAddressed(queries, path.split("/"))?.lookup;
  expect(find("cooling")).toBe("cooling");
  expect(find("cooling-5m")).toBe("cooling-5m");
  expect(find("cooling/temperature")).toBe("cooling-5m");
  expect(find("cooling/definition")).toBe("cooling");
  expect(find("heating/temperature")).toBeUndefined();
});
