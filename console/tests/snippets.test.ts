import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { buildAddress, buildAdHocCall, buildWarmCall, type QueryCall } from "../src/pages/queries/run/queryCall.ts";
import { buildCurl } from "../src/pages/queries/snippets/curl.ts";
import { buildGrafana } from "../src/pages/queries/snippets/grafana.ts";
import { buildPowerBi } from "../src/pages/queries/snippets/powerBi.ts";
import { buildPython } from "../src/pages/queries/snippets/python.ts";
import { toMLiteral } from "../src/pages/queries/snippets/text.ts";
import { buildTypescript } from "../src/pages/queries/snippets/typescript.ts";

const ORIGIN = "http://127.0.0.1:7071";
const HOSTILE = [
  "'; rm -rf / #",
  '"; $(touch /tmp/x) `id` $HOME \\',
  "line\nbreak\r\ttab",
  "@file",
  "a=b&c=d%41+e",
  '#(lf) ## #("',
  "ü ☃ 😀 \u2028 \u007f",
  "",
  "{x} {{y}} [1-9]",
];
const COLUMNS = [
  { name: "Timestamp", type: "datetime" },
  { name: 'odd "name"', type: "real" },
];

function asked(value: string): QueryCall {
  return buildWarmCall("cooling/it's", [["p.text", value]], { timeRange: "PT1H", from: "", to: "", limit: "10" });
}

/** What a program named curl gets as its arguments. */
function words(command: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  return execFileSync("sh", ["-c", script], { env: { TOKEN: "t" }, encoding: "utf-8" })
    .split("\0")
    .slice(0, -1);
}

test.each(HOSTILE)("a shell gives curl the value %j as it is", (value) => {
  const got = words(buildCurl({ ask: asked(value), origin: ORIGIN, columns: [] }));
  expect(got).toContain(`p.text=${value}`);
  expect(got).toContain("Authorization: Bearer t");
  expect(got).toContain(`${ORIGIN}/oi-api/warm-queries/cooling/it's`);
  const body = buildAdHocCall(value, { timeRange: "", from: "", to: "", limit: "" });
  const posted = words(buildCurl({ ask: body, origin: ORIGIN, columns: [] })).at(-1) ?? "";
  expect(JSON.parse(posted)).toEqual({ query: value, limit: 1000 });
});

test.each(HOSTILE)("Python reads %j back from its literal", (value) => {
  const program = buildPython({ ask: asked(value), origin: ORIGIN, columns: [] });
  const literals = [...program.matchAll(/"p\.text": ("(?:\\.|[^"\\])*")/g)].map((found) => JSON.parse(found[1] ?? ""));
  expect(literals).toEqual([value]);
  const posted = buildPython({
    ask: buildAdHocCall(value, { timeRange: "PT1H", from: "", to: "", limit: "5" }),
    origin: ORIGIN,
    columns: [],
  });
  expect(JSON.parse(/"query": (.*),\n/.exec(posted)?.[1] ?? "")).toBe(value);
});

test.each(HOSTILE)("Power Query M keeps %j inside its quotes", (value) => {
  const text = buildPowerBi({ ask: asked(value), origin: ORIGIN, columns: COLUMNS });
  expect(text).toContain(`#"p.text" = ${toMLiteral(value)}`);
  expect(readM(toMLiteral(value))).toBe(value);
  expect(text).toContain('"odd ""name"""');
});

test.each(HOSTILE)("Grafana gets JSON whose address holds %j", (value) => {
  const query = JSON.parse(buildGrafana({ ask: asked(value), origin: ORIGIN, columns: COLUMNS }));
  expect(new URL(query.url).searchParams.get("p.text")).toBe(value);
  expect(query).toMatchObject({ format: "timeseries", root_selector: "results" });
  expect(query.columns[0]).toEqual({ selector: "Timestamp", text: "Timestamp", type: "timestamp" });
});

test.each(HOSTILE)("TypeScript holds %j as one literal", (value) => {
  const text = buildTypescript({ ask: asked(value), origin: ORIGIN, columns: COLUMNS });
  const found = /\["p\.text", ("(?:\\.|[^"\\])*")\]/.exec(text);
  expect(JSON.parse(found?.[1] ?? "")).toBe(value);
});

test("what is copied holds a placeholder, and the same call for each program", () => {
  const subject = { ask: asked("x"), origin: ORIGIN, columns: COLUMNS };
  for (const text of [buildCurl, buildPython, buildTypescript, buildPowerBi, buildGrafana].map((make) =>
    make(subject),
  )) {
    expect(text).not.toMatch(/eyJ|oik_/);
    expect(text).toContain("PT1H");
  }
  expect(buildAddress(subject.ask)).toBe("/oi-api/warm-queries/cooling/it's?p.text=x&timeRange=PT1H&limit=10");
});

/** Reads a literal of Power Query M, as its grammar says; fails where it ends before its end. */
function readM(literal: string): string {
  expect(literal).toMatch(/^"(?:[^"#]|""|#\((?:#|[0-9a-f]{4})\)|#(?!\())*"$/u);
  return literal
    .slice(1, -1)
    .replace(/""|#\(#\)|#\(([0-9a-f]{4})\)/g, (each, hex: string | undefined) =>
      each === '""' ? '"' : hex === undefined ? "#" : String.fromCharCode(Number.parseInt(hex, 16)),
    );
}
