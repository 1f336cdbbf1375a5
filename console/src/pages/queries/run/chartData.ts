import type { QueryColumn, QueryResult } from "@/api/queries.ts";
import type { Series } from "@/components/Chart.tsx";

export const MAX_SERIES = 12;
const MEASURED = new Set(["real", "decimal"]);
const COUNTED = new Set(["int", "long"]);
const NAMING = new Set(["string", "guid"]);

/** The roles of a result's columns in a chart. */
export interface Roles {
  time: string;
  /** Numeric columns. */
  values: readonly string[];
  /** Columns to draw at first: measurements before counts. */
  chosen: readonly string[];
  /** Columns whose values identify a line. */
  names: readonly string[];
}

/** Lines over time. */
export interface Lines {
  /** Seconds since 1970, ascending, each once. */
  times: readonly number[];
  series: readonly Series[];
  /** Number of all lines, drawn or not. */
  found: number;
}

/** Assigns the roles time, value and name to columns; undefined if a chart is not possible. */
export function assignRoles(columns: readonly QueryColumn[]): Roles | undefined {
  const of = (types: ReadonlySet<string>) => columns.filter((each) => types.has(each.type)).map((each) => each.name);
  const time = columns.find((each) => each.type === "datetime")?.name;
  const values = columns.filter((each) => MEASURED.has(each.type) || COUNTED.has(each.type)).map((each) => each.name);
  const measured = of(MEASURED);
  if (time === undefined || values.length === 0) {
    return undefined;
  }
  return { time, values, chosen: measured.length > 0 ? measured : values, names: of(NAMING) };
}

/** Converts rows to lines: one for each chosen column and combination of names; at most the twelve longest. */
export function buildLines(answer: QueryResult, roles: Roles, chosen: readonly string[]): Lines {
  const names = roles.names.filter((column) => isLineName(answer.results, column));
  const points = new Map<string, Map<number, number>>();
  for (const row of answer.results) {
    const at = new Date(String(row[roles.time])).getTime() / 1000;
    const name = names.map((column) => String(row[column] ?? "–")).join(" · ");
    for (const column of chosen) {
      const value = toNumber(row[column]);
      if (!Number.isNaN(at) && value !== undefined) {
        addPoint(points, buildLabel(name, column, chosen), at, value);
      }
    }
  }
  const kept = [...points].sort(([, left], [, right]) => right.size - left.size).slice(0, MAX_SERIES);
  kept.sort(([left], [right]) => ORDER.compare(left, right));
  const times = [...new Set(kept.flatMap(([, line]) => [...line.keys()]))].sort((left, right) => left - right);
  const series = kept.map(([name, line]) => ({ label: name, values: times.map((time) => line.get(time)) }));
  return { times, series, found: points.size };
}

/** Tells whether a column identifies lines; ids that differ in nearly every row do not. */
function isLineName(rows: QueryResult["results"], column: string): boolean {
  const different = new Set(rows.map((row) => row[column])).size;
  return different <= Math.max(MAX_SERIES, rows.length / 4);
}

const ORDER = new Intl.Collator("en", { numeric: true });

function buildLabel(name: string, column: string, chosen: readonly string[]): string {
  return name === "" ? column : chosen.length === 1 ? name : `${name} · ${column}`;
}

function addPoint(points: Map<string, Map<number, number>>, name: string, at: number, value: number): void {
  const line = points.get(name) ?? new Map<number, number>();
  points.set(name, line.set(at, value));
}

function toNumber(value: unknown): number | undefined {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
