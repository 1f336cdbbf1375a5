import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { Button } from "./Button.tsx";
import css from "./Chart.module.css";
import { ChartTable } from "./ChartTable.tsx";
import { type Limits, NO_LIMITS } from "./chartLimits.ts";
import { escapeInvisible } from "./invisible.ts";
import { decimate, type Range } from "./plot/decimate.ts";
import { LineSample } from "./plot/LineSample.tsx";
import { Plot, type PlotSource } from "./plot/Plot.tsx";

/** A line of a chart. */
export interface Series {
  label: string;
  /** One value for each time; null draws a gap, undefined connects the neighbouring points. */
  values: readonly (number | null | undefined)[];
  /** Whether the values are marks, such as anomalies, instead of a line. */
  marks?: boolean;
}

interface Props {
  /** Description of the chart, for screen readers. */
  label: string;
  /** Seconds since 1970, ascending. */
  times: readonly number[];
  /** At most twelve can be distinguished. */
  series: readonly Series[];
  unit?: string;
  /** Expected range, drawn as a band. */
  limits?: Limits;
  height?: number;
}

/** Half the range of a chart with one time. */
const AROUND = 30;

/** Lines over time, with a legend that hides lines, zoom, and a table of the values. */
export function Chart({ label, times, series, unit = "", limits = NO_LIMITS, height = 240 }: Props) {
  const [zoom, setZoom] = useState<Range>();
  const [hiddenNames, setHiddenNames] = useState<ReadonlySet<string>>(new Set());
  const [table, setTable] = useState(false);
  const source = useMemo(() => createSource(times, series), [times, series]);
  const names = series.map((line) => escapeInvisible(line.label).replaceAll("\n", " "));
  const hidden = useMemo(
    () => new Set(names.flatMap((name, index) => (hiddenNames.has(name) ? [index] : []))),
    [names.join("\n"), hiddenNames],
  );
  const marks = useMemo(() => findMarks(series), [series]);
  // Another result has other times.
  useLayoutEffect(() => setZoom(undefined), [times]);
  const toggle = (name: string) => {
    const next = new Set(hiddenNames);
    if (!next.delete(name)) {
      next.add(name);
    }
    setHiddenNames(next);
  };
  return (
    <figure class={css.chart}>
      <Plot {...{ label, source, names, hidden, marks, unit, limits, height, zoom }} onZoom={setZoom} />
      <div class={css.below}>
        <ul class={css.legend} aria-label="Lines">
          {names.map((name, index) => (
            <li key={name}>
              <button type="button" aria-pressed={!hidden.has(index)} onClick={() => toggle(name)}>
                <LineSample index={index} mark={marks.has(index)} />
                {name}
              </button>
            </li>
          ))}
        </ul>
        <span class={css.actions}>
          {zoom ? (
            <Button kind="quiet" onClick={() => setZoom(undefined)}>
              Reset zoom
            </Button>
          ) : (
            <span class={css.hint}>Drag to zoom</span>
          )}
          <Button kind="quiet" icon="table" onClick={() => setTable(!table)}>
            {table ? "Hide the values" : "Values as a table"}
          </Button>
        </span>
      </div>
      {table && <ChartTable label={`Values: ${label}`} times={times} series={series} unit={unit} />}
    </figure>
  );
}

function findMarks(series: readonly Series[]): ReadonlySet<number> {
  return new Set(series.flatMap((line, index) => (line.marks ? [index] : [])));
}

function createSource(times: readonly number[], series: readonly Series[]): PlotSource {
  const data = { times, lines: series.map((line) => line.values) };
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 1];
  const whole: Range = first === last ? [first - AROUND, last + AROUND] : [first, last];
  return { range: () => whole, read: (range, pixels) => decimate(data, range, pixels) };
}
