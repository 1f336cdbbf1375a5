import { useMemo, useState } from "preact/hooks";
import type { Signal } from "@/api/connections.ts";
import type { QueryColumn, QueryResult } from "@/api/queries.ts";
import { type Column, toColumnType } from "@/components/columns.ts";
import { DataTable } from "@/components/DataTable.tsx";
import { Empty } from "@/components/Empty.tsx";
import { Notice } from "@/components/Notice.tsx";
import { Tabs } from "@/components/Tabs.tsx";
import { formatQuantity } from "@/format.ts";
import { assignRoles } from "./chartData.ts";
import { JsonCell } from "./JsonCell.tsx";
import { adviseOnTruncation, type QueryCall } from "./queryCall.ts";
import { ResultChart } from "./ResultChart.tsx";
import css from "./Results.module.css";
import { Summary } from "./Summary.tsx";
import { expandSeries } from "./seriesRows.ts";

type View = "chart" | "table";
type Row = Record<string, unknown>;

const VIEWS = [
  { id: "chart", title: "Chart" },
  { id: "table", title: "Table" },
] as const;

interface Props {
  answer: QueryResult;
  asked: QueryCall;
  /** Signals of the connections that the query reads. */
  signals: readonly Signal[];
}

/** A result as a chart and a table, with a summary. */
export function Results({ answer, asked, signals }: Props) {
  const expanded = useMemo(() => expandSeries(answer), [answer]);
  const roles = useMemo(() => assignRoles(expanded.columns, expanded.visualization), [expanded]);
  const [chosen, setChosen] = useState<View>("chart");
  const drawable = roles !== undefined && expanded.rowCount > 1;
  const table = <ResultTable answer={answer} />;
  return (
    <div class={css.results}>
      <Summary answer={answer} asked={asked} />
      {answer.truncated && (
        <Notice kind="warn" title={`The result is cut off after ${formatQuantity(answer.rowCount, "row")}`}>
          <p>{adviseOnTruncation(answer.rowCount)}</p>
        </Notice>
      )}
      {drawable ? (
        <Tabs label="Form of the result" tabs={VIEWS} selected={chosen} onSelect={setChosen}>
          {chosen === "chart" ? <ResultChart answer={expanded} roles={roles} signals={signals} /> : table}
        </Tabs>
      ) : (
        table
      )}
    </div>
  );
}

function ResultTable({ answer }: { answer: QueryResult }) {
  const columns = useMemo(() => answer.columns.map(toColumn), [answer]);
  return (
    <DataTable
      label="Rows of the result"
      columns={columns}
      rows={answer.results}
      rowKey={(_, index) => String(index)}
      adjustable
      empty={<Empty title="The query returned no rows">Choose a longer time range or other parameters.</Empty>}
    />
  );
}

const WIDTHS: Record<string, number> = { datetime: 176, bool: 88, int: 104, long: 120, real: 160, decimal: 160 };

function toColumn({ name, type }: QueryColumn): Column<Row> {
  // The head shows the type, too, and must fit.
  const head = 44 + name.length * 7.2 + type.length * 6.2;
  const width = Math.round(Math.max(WIDTHS[type] ?? 168, head));
  const column = {
    key: name,
    title: name,
    note: type,
    type: toColumnType(type),
    value: (row: Row) => row[name],
    width,
  };
  return type === "dynamic" ? { ...column, render: (row) => <JsonCell column={name} value={row[name]} /> } : column;
}
