// Expansion of series, such as those of `make-series`, to rows for a chart.
import type { QueryColumn, QueryResult } from "@/api/queries.ts";

/** Most rows of an expanded result. */
export const MAX_ROWS = 200_000;
const INSTANT = /^\d{4}-\d{2}-\d{2}T/;

/**
 * Expands rows whose cells are series to a row for each time; returns a result without `render` or without an array of
 * times unchanged.
 */
export function expandSeries(answer: QueryResult): QueryResult {
  const time = answer.visualization ? findTimes(answer) : undefined;
  if (time === undefined) {
    return answer;
  }
  const values = answer.columns.map(({ name }) => name).filter((name) => name !== time && hasNumbers(answer, name));
  const results: Record<string, unknown>[] = [];
  for (const row of answer.results) {
    const times = toArray(row[time]);
    for (let index = 0; index < times.length && results.length < MAX_ROWS; index += 1) {
      const cells = values.map((name) => [name, toArray(row[name])[index] ?? null] as const);
      results.push({ ...row, ...Object.fromEntries(cells), [time]: times[index] });
    }
  }
  const columns = answer.columns.map((column) => toExpandedColumn(column, time, values));
  return { ...answer, columns, results, rowCount: results.length };
}

function toExpandedColumn(column: QueryColumn, time: string, values: readonly string[]): QueryColumn {
  const type = column.name === time ? "datetime" : values.includes(column.name) ? "real" : column.type;
  return { ...column, type };
}

/** Returns the column with arrays of times: the x-axis of the chart, or the first such column. */
function findTimes({ columns, results, visualization }: QueryResult): string | undefined {
  const dynamic = columns.filter(({ type }) => type === "dynamic").map(({ name }) => name);
  const wanted = dynamic.filter((name) => results.some((row) => INSTANT.test(String(toArray(row[name])[0]))));
  return wanted.find((name) => name === visualization?.xColumn) ?? wanted[0];
}

function hasNumbers({ columns, results }: QueryResult, name: string): boolean {
  const isDynamic = columns.some((column) => column.name === name && column.type === "dynamic");
  return isDynamic && results.some((row) => toArray(row[name]).some((value) => typeof value === "number"));
}

function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
