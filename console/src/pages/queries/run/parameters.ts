import type { QueryParameter } from "@/api/queries.ts";

/** Kind of input of a parameter. */
export type Input = "text" | "number" | "choice" | "time";

const INPUTS: Record<string, Input> = {
  bool: "choice",
  int: "number",
  long: "number",
  real: "number",
  decimal: "number",
  datetime: "time",
};

const HINTS: Record<string, string> = {
  bool: "true or false",
  int: "a whole number",
  long: "a whole number",
  real: "a number",
  decimal: "a number",
  string: "text",
  datetime: "RFC 3339, such as 2026-01-05T08:00:00Z",
  timespan: "such as 15m, 1d, 01:30:00 or PT15M",
  guid: "a GUID",
  dynamic: "JSON",
};

/** Returns the kind of input for a Kusto type; numbers use text, because a long can exceed JavaScript's precision. */
export function chooseInput(type: string): Input {
  return INPUTS[type] ?? "text";
}

/** Returns a hint about the format of a value and its default. */
export function buildHint(parameter: QueryParameter): string {
  const form = `${parameter.type}, ${HINTS[parameter.type] ?? "a value"}`;
  return isRequired(parameter) ? `${form}; required` : form;
}

/** Tells whether a parameter contains a connection's lookup, by its name or by its use in the query. */
export function isConnectionParameter({ name, type }: QueryParameter, kql: string): boolean {
  if (type !== "string") {
    return false;
  }
  const compared = new RegExp(`\\bConnectionLookup\\s*(?:==|=~|!=|!~|in~?)\\s*\\(?\\s*${name}\\b`);
  return /^connection(?:Lookup|Id)?$/i.test(name) || (/^\w+$/.test(name) && compared.test(kql));
}

/** Lists the values of a connection parameter: connections, the default, and a value that is no connection. */
export function listConnections(
  connections: readonly string[],
  value: string,
  fallback: string,
  required: boolean,
): { value: string; label: string }[] {
  const names = [...new Set([...connections, fallback, value])].filter((name) => name !== "");
  const none = required ? "Choose a connection" : "Any connection";
  return [
    ...(fallback === "" || value === "" ? [{ value: "", label: none }] : []),
    ...names.map((name) => ({ value: name, label: name })),
  ];
}

/** Tells whether a parameter is required. */
export function isRequired(parameter: QueryParameter): boolean {
  return !("default" in parameter);
}

/** Formats a default for an input; empty if there is none or it is null. */
export function formatDefault(parameter: QueryParameter): string {
  const value = parameter.default;
  if (value === undefined || value === null) {
    return "";
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Returns the query parameters of a form: every value except defaults. An empty string is sent; an empty value of another type means the default.
 */
export function buildArguments(
  parameters: readonly QueryParameter[],
  values: ReadonlyMap<string, string>,
): [name: string, value: string][] {
  return parameters.flatMap((parameter): [string, string][] => {
    const value = values.get(parameter.name) ?? formatDefault(parameter);
    const plain = value === formatDefault(parameter) && !isRequired(parameter);
    const empty = value === "" && parameter.type !== "string";
    return plain || empty ? [] : [[`p.${parameter.name}`, value]];
  });
}
