import { useMemo, useState } from "preact/hooks";
import type { Signal } from "@/api/connections.ts";
import type { QueryResult } from "@/api/queries.ts";
import { Chart } from "@/components/Chart.tsx";
import { describeLimits } from "@/components/chartLimits.ts";
import { Empty } from "@/components/Empty.tsx";
import { Checkbox } from "@/components/Field.tsx";
import { Notice } from "@/components/Notice.tsx";
import { combineSignals } from "@/components/signals.ts";
import { buildLines, MAX_SERIES, type Roles } from "./chartData.ts";
import { findColumnSignal } from "./columnSignals.ts";
import css from "./Results.module.css";

interface Props {
  answer: QueryResult;
  roles: Roles;
  /** Signals of the connections that the query reads. */
  signals: readonly Signal[];
}

/** A chart of the numeric columns of a result over time. */
export function ResultChart({ answer, roles, signals }: Props) {
  const [wanted, setWanted] = useState<readonly string[]>();
  const chosen = wanted?.filter((name) => roles.values.includes(name)) ?? roles.chosen;
  const lines = useMemo(() => buildLines(answer, roles, chosen), [answer, roles, JSON.stringify(chosen)]);
  const { unit, limits } = combineSignals(chosen.map((column) => findColumnSignal(column, signals)));
  const expected = describeLimits(limits, unit);
  const toggle = (name: string, on: boolean) =>
    setWanted(roles.values.filter((each) => (each === name ? on : chosen.includes(each))));
  return (
    <div>
      {roles.values.length > 1 && (
        <fieldset class={css.values}>
          <legend>Values</legend>
          {roles.values.map((name) => (
            <Checkbox
              key={name}
              label={addUnit(name, signals)}
              checked={chosen.includes(name)}
              onChange={(on) => toggle(name, on)}
            />
          ))}
        </fieldset>
      )}
      {lines.found > MAX_SERIES && (
        <Notice title={`Only ${MAX_SERIES} of ${lines.found} lines are drawn: those with the most points`}>
          <p>The table has all rows. Choose fewer values or filter by a parameter for fewer lines.</p>
        </Notice>
      )}
      {lines.series.length === 0 ? (
        <Empty title="Nothing to draw">Choose a value above, or open the table.</Empty>
      ) : (
        <Chart
          label={`${chosen.join(", ")} over ${roles.time}; the table has the numbers`}
          times={lines.times}
          series={lines.series}
          unit={unit}
          limits={limits}
          height={320}
        />
      )}
      {expected && <p class={css.expected}>The band is the expected range: {expected}.</p>}
    </div>
  );
}

function addUnit(column: string, signals: readonly Signal[]): string {
  const unit = findColumnSignal(column, signals)?.unit;
  return unit ? `${column} (${unit})` : column;
}
