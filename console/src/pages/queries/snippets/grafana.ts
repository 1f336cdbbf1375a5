import { buildAddress } from "../run/queryCall.ts";
import type { Subject } from "./text.ts";

const TYPES: Record<string, string> = {
  bool: "boolean",
  int: "number",
  long: "number",
  real: "number",
  decimal: "number",
  datetime: "timestamp",
};

/** Returns the call as a query of Grafana's Infinity data source, which stores the token itself. */
export function buildGrafana({ ask, origin, columns }: Subject): string {
  const time = columns.some(({ type }) => type === "datetime");
  const query = {
    refId: "A",
    type: "json",
    parser: "backend",
    source: "url",
    format: time ? "timeseries" : "table",
    url: origin + buildAddress(ask),
    url_options: ask.body ? formatBody(ask.body) : { method: "GET", data: "" },
    root_selector: "results",
    columns: columns.map(({ name, type }) => ({ selector: name, text: name, type: TYPES[type] ?? "string" })),
    filters: [],
  };
  return `${JSON.stringify(query, null, 2)}\n`;
}

function formatBody(body: object): object {
  return {
    method: "POST",
    body_type: "raw",
    body_content_type: "application/json",
    data: JSON.stringify(body),
  };
}
