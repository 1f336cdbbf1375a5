import type { Column } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { formatReading } from "@/format.ts";
import type { Series } from "@/live/history.ts";
import type { Live } from "@/live/live.ts";
import { buildSeriesName } from "./choice.ts";

interface Props {
  live: Live;
  series: readonly Series[];
}

interface Row {
  id: string;
  source: string;
  field: string;
  value: number;
  lowest: number;
  highest: number;
  at: number;
}

/** The drawn series as a table: the newest value, and the lowest and highest of the window. */
export function LiveTable({ live, series }: Props) {
  const now = live.pausedAt ?? live.now();
  return (
    <DataTable
      label="Values of the charts"
      columns={COLUMNS}
      rows={series.map((each) => summarize(each, live.history.width, live.history.seconds, now))}
      rowKey={(row) => row.id}
      height={420}
    />
  );
}

/** Summarizes the values of a series within the window that ends at a time. */
export function summarize(series: Series, width: number, seconds: number, now: number): Row {
  let [lowest, highest] = [Number.NaN, Number.NaN];
  series.bins.each(Math.floor((now - seconds * 1000) / width) + 1, Math.floor(now / width), (_, low, high) => {
    lowest = Number.isNaN(lowest) ? low : Math.min(lowest, low);
    highest = Number.isNaN(highest) ? high : Math.max(highest, high);
  });
  const { id, field, value, at } = series;
  return { id, source: buildSeriesName(series), field, value, lowest, highest, at };
}

function buildNumber(key: "value" | "lowest" | "highest", title: string): Column<Row> {
  return {
    key,
    title,
    type: "number",
    width: 120,
    value: (row) => (Number.isNaN(row[key]) ? null : row[key]),
    render: (row) => (Number.isNaN(row[key]) ? "–" : formatReading(row[key])),
  };
}

const COLUMNS: readonly Column<Row>[] = [
  { key: "source", title: "Source", value: (row) => row.source },
  { key: "field", title: "Field", value: (row) => row.field },
  buildNumber("value", "Newest"),
  buildNumber("lowest", "Lowest"),
  buildNumber("highest", "Highest"),
  { key: "at", title: "Time", type: "time", width: 176, value: (row) => new Date(row.at).toISOString() },
];
