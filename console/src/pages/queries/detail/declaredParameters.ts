import type { QueryParameter, WarmQuery } from "@/api/queries.ts";

const EXAMPLES: Record<string, string> = {
  bool: "true",
  int: "0",
  long: "0",
  real: "0.0",
  decimal: "decimal(0)",
  string: '""',
  datetime: "datetime(2026-01-01)",
  timespan: "1h",
  guid: "guid(null)",
  dynamic: "dynamic(null)",
};
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/** Returns a query's text with its parameters declared in KQL, as a complete query. */
export function declareParameters(query: Pick<WarmQuery, "kql" | "parameters">): string {
  if (query.parameters.length === 0) {
    return query.kql;
  }
  const list = query.parameters.map((each) => `${each.name}:${each.type} = ${formatValue(each)}`).join(", ");
  return `declare query_parameters(${list});\n${query.kql}`;
}

/** Returns a query's text as a complete query, with entered values instead of the defaults; empty ones do not count. */
export function buildTrialText(
  query: Pick<WarmQuery, "kql" | "parameters">,
  values: ReadonlyMap<string, string>,
): string {
  const parameters = query.parameters.map((each) => {
    const value = values.get(each.name);
    return value === undefined || (value === "" && each.type !== "string") ? each : { ...each, default: value };
  });
  return declareParameters({ kql: query.kql, parameters });
}

function formatValue({ type, default: given }: QueryParameter): string {
  const fallback = EXAMPLES[type] ?? '""';
  if (given === undefined || given === null) {
    return fallback;
  }
  const text = typeof given === "object" ? JSON.stringify(given) : String(given);
  switch (type) {
    case "string":
      return JSON.stringify(text);
    case "datetime":
    case "guid":
    case "decimal":
    case "dynamic":
      return `${type}(${text})`;
    case "timespan":
      return /^P/.test(text) ? fallback : /^[\d.]+[a-z]+$/.test(text) ? text : `time(${text})`;
    default:
      return NUMBER.test(text) || /^(true|false)$/.test(text) ? text : fallback;
  }
}
