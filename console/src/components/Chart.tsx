import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { subscribeToTheme } from "@/shell/theme.ts";
import css from "./Chart.module.css";
import { formatLegendTime, formatTicks } from "./chartTimes.ts";
import { formatMark, listSteps, measureWidth } from "./chartValues.ts";
import { escapeInvisible } from "./invisible.ts";

/** A line of a chart. */
export interface Series {
  label: string;
  /** One value for each time; null draws a gap, undefined connects the neighbouring points. */
  values: readonly (number | null | undefined)[];
}

interface Props {
  /** Description of the chart, for screen readers; a table has the numbers. */
  label: string;
  /** Seconds since 1970, ascending. */
  times: readonly number[];
  /** At most twelve can be distinguished: six colours, solid and dashed. */
  series: readonly Series[];
  unit?: string;
  height?: number;
}

/** Lines over time. */
export function Chart({ label, times, series, unit = "", height = 240 }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [times, ...series.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const names = JSON.stringify(series.map((line) => escapeInvisible(line.label).replaceAll("\n", " ")));
  useEffect(() => {
    let gone = false;
    const draw = async () => {
      const { default: Plot } = await loadLibrary();
      if (!gone && box.current) {
        plot.current?.destroy();
        plot.current = new Plot(buildOptions(box.current, names, unit, height), latest.current, box.current);
      }
    };
    void draw();
    const stop = subscribeToTheme(() => void draw());
    const sizes = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: Math.floor(entry?.contentRect.width ?? 0), height });
    });
    if (box.current) {
      sizes.observe(box.current);
    }
    return () => {
      gone = true;
      stop();
      sizes.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names, unit, height]);
  useEffect(() => plot.current?.setData(latest.current), [times, series]);
  return <div ref={box} class={css.chart} role="img" aria-label={label} style={{ minHeight: `${height}px` }} />;
}

const COLOURS = 6;
let library: Promise<{ default: typeof uPlot }> | undefined;

/** Fetches the library when the first chart is drawn. */
export function loadLibrary(): Promise<{ default: typeof uPlot }> {
  library ??= Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]).then(([module]) => module);
  return library;
}

function buildOptions(box: HTMLElement, names: string, unit: string, height: number): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--text-faint"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line") },
  };
  const font = `12px ${color("--font")}`;
  return {
    width: box.clientWidth,
    height,
    cursor: { points: { size: 6 } },
    legend: { markers: { dash: (_, index) => (index > COLOURS ? "dashed" : "solid") } },
    axes: [
      { ...axis, font, space: 72, values: (_, ticks, __, ___, step) => formatTicks(ticks, step) },
      {
        ...axis,
        font,
        size: (_, marks) => measureWidth(marks, 64),
        incrs: (_, __, lowest, highest, pixels, space) => listSteps(lowest, highest, pixels, space),
        values: (_, ticks) => ticks.map((tick) => `${formatMark(tick)}${unit && ` ${unit}`}`),
      },
    ],
    series: [
      { label: "Time", value: (_, at) => formatLegendTime(at) },
      ...(JSON.parse(names) as string[]).map((label, index) => ({
        label,
        stroke: color(`--series-${(index % COLOURS) + 1}`),
        width: 1.5,
        ...(index < COLOURS ? {} : { dash: [6, 4] }),
      })),
    ],
  };
}
