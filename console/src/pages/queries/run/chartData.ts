import type { QueryColumn, QueryResult, Visualization } from "@/api/queries.ts";
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
  /** Columns whose values other than 0 mark an anomaly. */
  anomalies: readonly string[];
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
export function assignRoles(columns: readonly QueryColumn[], rendered?: Visualization | null): Roles | undefined {
  const of = (types: ReadonlySet<string>) => columns.filter((each) => types.has(each.type)).map((each) => each.name);
  const instants = columns.filter((each) => each.type === "datetime").map((each) => each.name);
  const time = instants.find((name) => name === rendered?.xColumn) ?? instants[0];
  const values = columns.filter((each) => MEASURED.has(each.type) || COUNTED.has(each.type)).map((each) => each.name);
  const measured = of(MEASURED);
  if (time === undefined || values.length === 0) {
    return undefined;
  }
  const anomalies = values.filter((name) => rendered?.anomalyColumns?.includes(name));
  const lines = (measured.length > 0 ? measured : values).filter((name) => !anomalies.includes(name));
  const named = lines.filter((name) => rendered?.yColumns?.includes(name));
  const [first] = anomalies;
  // The columns after the anomalies are their scores and baselines; scores would set the scale of the chart.
  const measurements = first === undefined ? [] : lines.filter((name) => values.indexOf(name) < values.indexOf(first));
  const chosen = [named, measurements, lines].find((found) => found.length > 0) ?? lines;
  return { time, values, chosen, names: of(NAMING), anomalies };
}

/** Converts rows to lines: one for each chosen column and combination of names; at most the twelve longest. */
export function buildLines(answer: QueryResult, roles: Roles, chosen: readonly string[]): Lines {
  const names = roles.names.filter((column) => isLineName(answer.results, column));
  const points = new Map<string, Map<number, number>>();
  for (const row of answer.results) {
    const at = toSeconds(String(row[roles.time]));
    const name = nameLine(row, names);
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
  const series: Series[] = kept.map(([name, line]) => ({ label: name, values: times.map((time) => line.get(time)) }));
  const marks = buildMarks(answer, roles, chosen, names);
  for (const { label, values } of [...series]) {
    for (const anomaly of roles.anomalies) {
      const marked = marks.get(`${label}\n${anomaly}`);
      if (marked) {
        const shown = values.map((value, index) => (marked.has(times[index] ?? Number.NaN) ? value : null));
        series.push({ label: `${label} · ${anomaly}`, values: shown, marks: true });
      }
    }
  }
  return { times, series, found: points.size };
}

/** Returns the times of the anomalies of the first chosen column, by the label of the line and the anomaly's column. */
function buildMarks(
  answer: QueryResult,
  roles: Roles,
  chosen: readonly string[],
  names: readonly string[],
): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>();
  const [column] = chosen;
  for (const row of column === undefined || roles.anomalies.length === 0 ? [] : answer.results) {
    const at = toSeconds(String(row[roles.time]));
    const label = buildLabel(nameLine(row, names), column ?? "", chosen);
    for (const anomaly of roles.anomalies) {
      if (toNumber(row[anomaly])) {
        const key = `${label}\n${anomaly}`;
        found.set(key, (found.get(key) ?? new Set<number>()).add(at));
      }
    }
  }
  return found;
}

function nameLine(row: QueryResult["results"][number], names: readonly string[]): string {
  return names.map((column) => String(row[column] ?? "–")).join(" · ");
}

/**
 * Tells whether a column identifies lines. A column with different values in most rows, such as a row id, does not.
 */
function isLineName(rows: QueryResult["results"], column: string): boolean {
  const different = new Set(rows.map((row) => row[column])).size;
  return different <= Math.max(MAX_SERIES, rows.length / 2);
}

const ORDER = new Intl.Collator("en", { numeric: true });

function buildLabel(name: string, column: string, chosen: readonly string[]): string {
  return name === "" ? column : chosen.length === 1 ? name : `${name} · ${column}`;
}

function addPoint(points: Map<string, Map<number, number>>, name: string, at: number, value: number): void {
  const line = points.get(name) ?? new Map<number, number>();
  points.set(name, line.set(at, value));
}

/** Converts an RFC 3339 time to seconds since 1970, with its microseconds, which `Date` drops. */
function toSeconds(text: string): number {
  const micros = /\.\d{3}(\d{1,3})/.exec(text)?.[1] ?? "";
  return new Date(text).getTime() / 1000 + Number(micros.padEnd(3, "0")) / 1_000_000;
}

function toNumber(value: unknown): number | undefined {
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
