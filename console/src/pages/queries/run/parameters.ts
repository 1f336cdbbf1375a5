import type { QueryParameter } from "@/api/queries.ts";

/** How a parameter is entered. */
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

/** Gives how values of a Kusto type are entered; numbers stay text, for a long may have more digits than JavaScript keeps. */
export function chooseInput(type: string): Input {
  return INPUTS[type] ?? "text";
}

/** Says what a value of a type looks like, and what leaving it out means. */
export function buildHint(parameter: QueryParameter): string {
  const form = `${parameter.type}, ${HINTS[parameter.type] ?? "a value"}`;
  return isRequired(parameter) ? `${form}; needed` : form;
}

/** Tells whether a caller must give it. */
export function isRequired(parameter: QueryParameter): boolean {
  return !("default" in parameter);
}

/** A default as the text that stands in an input; empty where there is none, or where it is null. */
export function formatDefault(parameter: QueryParameter): string {
  const value = parameter.default;
  if (value === undefined || value === null) {
    return "";
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Gives the query parameters that a form asks for: every value that is not the declared default. An emptied string is
 * sent as such; an emptied value of another type is left to its default.
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
