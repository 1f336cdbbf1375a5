import { useMemo } from "preact/hooks";
import type { Series } from "./Chart.tsx";
import type { Column } from "./columns.ts";
import { DataTable } from "./DataTable.tsx";

interface Props {
  label: string;
  /** Seconds since 1970. */
  times: readonly number[];
  series: readonly Series[];
  unit: string;
}

/** The values of a chart: a row for each time. */
export function ChartTable({ label, times, series, unit }: Props) {
  const rows = useMemo(() => times.map((_, index) => index), [times]);
  const columns = useMemo(() => buildColumns(times, series, unit), [times, series, unit]);
  return <DataTable label={label} columns={columns} rows={rows} rowKey={(row) => String(row)} height={320} />;
}

function buildColumns(times: readonly number[], series: readonly Series[], unit: string): readonly Column<number>[] {
  return [
    {
      key: "time",
      title: "Time",
      type: "time",
      width: 176,
      value: (row) => new Date((times[row] ?? 0) * 1000).toISOString(),
    },
    ...series.map(
      (line, index): Column<number> => ({
        key: String(index),
        title: line.label,
        note: unit,
        type: "number",
        width: Math.max(168, 60 + line.label.length * 7),
        value: (row) => line.values[row] ?? null,
      }),
    ),
  ];
}
