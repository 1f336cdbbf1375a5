import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { splitLines } from "../src/components/CodeHighlight.tsx";
import { findCompletionAction } from "../src/components/completions.ts";
import { computePlace } from "../src/components/textPlaces.ts";
import { completeKql, type KqlNames } from "../src/pages/queries/kql/completion.ts";
import { tokenizeKql } from "../src/pages/queries/kql/tokens.ts";
import { toNames } from "../src/pages/queries/kql/useKqlNames.ts";
import { COLUMNS } from "../src/pages/queries/kql/words.ts";
import { formatJson } from "../src/pages/queries/run/jsonCells.ts";
import { isConnectionParameter, listConnections } from "../src/pages/queries/run/parameters.ts";

const NAMES: KqlNames = {
  signals: [{ path: "motor.speed", note: "signal, rpm" }],
  parameters: [{ name: "device", type: "string" }],
  connections: ["chiller-sim", "pump-rig"],
};

function kinds(text: string): string[] {
  return tokenizeKql(text)
    .filter(({ kind }) => kind !== undefined)
    .map(({ text: part, kind }) => `${kind} ${part}`);
}

function offers(text: string): string[] {
  return completeKql(text, text.length, NAMES).items.map((item) => item.text);
}

describe("highlighting", () => {
  test("words, texts, numbers and comments have kinds", () => {
    expect(kinds('Telemetry | where x > 1.5 and n == "a // b" // note\n| project-away y')).toEqual([
      "name Telemetry",
      "keyword where",
      "number 1.5",
      "keyword and",
      'text "a // b"',
      "comment // note",
      "keyword project-away",
    ]);
    expect(kinds("summarize count() by bin(Timestamp, 5m)")).toEqual([
      "keyword summarize",
      "function count",
      "keyword by",
      "function bin",
      "name Timestamp",
      "number 5m",
    ]);
    expect(kinds("extend a-b = @'c:\\' | count")).toContain("text @'c:\\'");
  });

  test("no character is lost, whatever the text is, and long texts are fast", () => {
    for (const text of ["", '"open', "```\nlong\n``` x", "a\n\nb", "été ✓ 'x\\'y'", "#!%&"]) {
      expect(
        tokenizeKql(text)
          .map((token) => token.text)
          .join(""),
      ).toBe(text);
      expect(splitLines(tokenizeKql(text)).length).toBe(text.split("\n").length);
    }
    const hostile = `${'"'.repeat(50_000)}${"\\".repeat(50_000)}${"a-".repeat(50_000)}`;
    expect(
      tokenizeKql(hostile)
        .map((token) => token.text)
        .join(""),
    ).toBe(hostile);
  });
});

describe("completion", () => {
  test("after a pipe come operators, elsewhere names, functions and parameters", () => {
    expect(offers("Telemetry\n| su")).toEqual(["summarize", "consume", "getschema"].filter((each) => /su/.test(each)));
    expect(offers("Telemetry | where dev")).toEqual(["device", "DeviceId", "stdev", "stdevif", "stdevp"]);
    expect(offers("Tel")).toContain("Telemetry");
    expect(offers("let limit = 5; Telemetry | where n > lim")).toContain("limit");
    expect(offers("T | extend speed = 1 | where spe")[0]).toBe("speed");
  });

  test("fields of payloads and connections are offered where they fit", () => {
    expect(offers("Telemetry | where Payload.mo")).toEqual(["Payload.motor.speed"]);
    expect(offers('Telemetry | where ConnectionLookup == "ch')).toEqual(["chiller-sim"]);
    expect(offers('Telemetry | where ConnectionLookup in ("')).toEqual(["chiller-sim", "pump-rig"]);
  });

  test("nothing is offered within texts and comments, and for a complete word", () => {
    expect(offers('print "sum')).toEqual([]);
    expect(offers("// sum")).toEqual([]);
    expect(offers("Telemetry | where tolower")).toEqual([]);
  });

  test("a function is inserted with its bracket; the word before the caret is replaced", () => {
    const { from, items } = completeKql("print tolo", 10, NAMES);
    expect(from).toBe(6);
    expect(items.find((item) => item.text === "tolower")?.insert).toBe("tolower(");
  });

  test("arrow keys move through the offers, Enter and Tab accept, Escape closes", () => {
    expect(findCompletionAction("ArrowDown", 2, 3)).toEqual({ kind: "move", to: 0 });
    expect(findCompletionAction("ArrowUp", 0, 3)).toEqual({ kind: "move", to: 2 });
    expect(["Enter", "Tab", "Escape", "x"].map((key) => findCompletionAction(key, 0, 1)?.kind)).toEqual([
      "accept",
      "accept",
      "close",
      undefined,
    ]);
  });

  test("names come from the connections, each field once; columns are those of the documented table", () => {
    const signal = { name: "s", type: "real", unit: "rpm", description: null, min: null, max: null } as const;
    const connection = { lookup: "c", signals: [{ ...signal, pointer: "/motor/speed" }] };
    expect(toNames([connection, { ...connection, lookup: "d" }])).toMatchObject({
      signals: [{ path: "motor.speed" }],
      connections: ["c", "d"],
    });
    const documented = readFileSync("../docs/reference/kql.md", "utf8").replaceAll("\n", " ");
    const columns = Object.entries(COLUMNS).map(([name, type]) => `${name}:${type}`);
    expect(documented).toContain(`Telemetry(${columns.join(", ")})`);
  });
});

test("an offset becomes a place, also at the end of a line and of the text", () => {
  const lines = "ab\ncd".split("\n");
  expect([0, 2, 3, 5, 9].map((offset) => computePlace(lines, offset))).toEqual([
    { line: 1, column: 1 },
    { line: 1, column: 3 },
    { line: 2, column: 1 },
    { line: 2, column: 3 },
    { line: 2, column: 3 },
  ]);
});

test("objects, arrays and texts that contain them open over several lines", () => {
  expect(formatJson({ a: 1 })).toBe('{\n  "a": 1\n}');
  expect(formatJson('[1, {"b": null}]')).toContain('"b": null');
  expect(["text", "{no json", "", 5, null, true].map(formatJson)).toEqual(Array(6).fill(undefined));
});

test("a text parameter with a connection's lookup is recognised by its name or its use", () => {
  const parameter = (name: string, type = "string") => ({ name, type });
  expect(isConnectionParameter(parameter("connection"), "T")).toBe(true);
  expect(isConnectionParameter(parameter("line"), "T | where ConnectionLookup == line")).toBe(true);
  expect(isConnectionParameter(parameter("line"), "T | where ConnectionLookup == lineTwo")).toBe(false);
  expect(isConnectionParameter(parameter("connection", "long"), "T")).toBe(false);
  expect(isConnectionParameter(parameter("device"), "T | where DeviceId == device")).toBe(false);
});

test("the list of a connection parameter has its default and a value that is no longer there", () => {
  const labels = (...given: [string, string, boolean]) =>
    listConnections(["a", "b"], ...given).map(({ label }) => label);
  expect(labels("", "", false)).toEqual(["Any connection", "a", "b"]);
  expect(labels("gone", "b", true)).toEqual(["a", "b", "gone"]);
  expect(labels("", "b", true)).toEqual(["Choose a connection", "a", "b"]);
});

test("functions have their parameters as a note", () => {
  const notes = new Map(completeKql("T | extend x = round", 20, NAMES).items.map(({ text, note }) => [text, note]));
  expect(notes.get("round")).toBe("(number, [precision])");
  const series = completeKql("extend x = series_decompose_a", 29, NAMES).items[0];
  expect(series?.note).toContain("series, [threshold]");
});
