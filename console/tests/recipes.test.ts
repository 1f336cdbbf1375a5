import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { buildWarmCall } from "../src/pages/queries/run/queryCall.ts";
import { buildCurl } from "../src/pages/queries/snippets/curl.ts";
import { buildGrafana } from "../src/pages/queries/snippets/grafana.ts";
import { buildPowerBi } from "../src/pages/queries/snippets/powerBi.ts";
import { buildPython } from "../src/pages/queries/snippets/python.ts";

const COLUMNS = [
  { name: "DeviceId", type: "string" },
  { name: "Timestamp", type: "datetime" },
  { name: "avgTemperature", type: "real" },
  { name: "minTemperature", type: "real" },
  { name: "maxTemperature", type: "real" },
  { name: "readings", type: "long" },
];
const SUBJECT = {
  ask: buildWarmCall("chiller-temperature-5m", [], { timeRange: "PT24H", from: "", to: "", limit: "1000" }),
  origin: "https://plant.example",
  columns: COLUMNS,
};

test.each([
  ["curl", buildCurl],
  ["python", buildPython],
  ["power-bi", buildPowerBi],
  ["grafana", buildGrafana],
])("the recipe for %s shows the text that the console copies", (page, build) => {
  const text = readFileSync(`${import.meta.dirname}/../../docs/how-to/connect/${page}.md`, "utf8");
  expect(text).toContain(build(SUBJECT));
});
