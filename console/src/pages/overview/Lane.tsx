import { useEffect, useMemo, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { loadLibrary } from "@/components/Chart.tsx";
import { formatMark, listSteps } from "@/components/chartValues.ts";
import { formatReading } from "@/format.ts";
import type { Live } from "@/live/live.ts";
import { findIsolated, type Point, View } from "@/live/view.ts";
import { subscribeToTheme } from "@/shell/theme.ts";
import { buildSeriesName, type Group } from "./choice.ts";
import css from "./Lane.module.css";

const HEIGHT = 132;
const COLORS = 6;

interface Props {
  live: Live;
  group: Group;
  /** Whether to draw the time axis. */
  last: boolean;
}

/** A chart of one field over the window, drawn live. */
export function Lane({ live, group, last }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const { history } = live;
  const ids = group.series.map((series) => series.id).join(",");
  const view = useMemo(() => new View(group.series, history.width), [ids, history]);
  useEffect(() => {
    let plot: uPlot | undefined;
    let gone = false;
    const draw = (now: number) => {
      view.fill(now);
      plot?.setData(toPlotData(view));
    };
    const make = async () => {
      const { default: Plot } = await loadLibrary();
      if (!gone && box.current) {
        plot?.destroy();
        plot = new Plot(buildOptions(box.current, view, last, history.seconds), toPlotData(view), box.current);
        draw(live.pausedAt ?? Date.now());
      }
    };
    void make();
    const ends = [live.onDraw(draw), subscribeToTheme(() => void make())];
    const sizes = new ResizeObserver(([entry]) => {
      plot?.setSize({ width: Math.floor(entry?.contentRect.width ?? 0), height: computeHeight(last) });
    });
    if (box.current) {
      sizes.observe(box.current);
    }
    return () => {
      gone = true;
      for (const end of ends) {
        end();
      }
      sizes.disconnect();
      plot?.destroy();
    };
  }, [view, live, last]);
  return (
    <section class={css.lane} aria-label={group.field}>
      <header>
        <h3>{group.field}</h3>
        <ul>
          {group.series.map((series, index) => (
            <li key={series.id} data-series={(index % COLORS) + 1} data-dashed={index >= COLORS || undefined}>
              <span class={css.name}>{buildSeriesName(series)}</span>
              <strong>{Number.isNaN(series.value) ? "–" : formatReading(series.value)}</strong>
            </li>
          ))}
        </ul>
      </header>
      <div
        ref={box}
        role="img"
        aria-label={`${group.field} over time; the newest values are above`}
        style={{ height: `${computeHeight(last)}px` }}
      />
    </section>
  );
}

function computeHeight(last: boolean): number {
  return last ? HEIGHT + 28 : HEIGHT;
}

function toPlotData(view: View): uPlot.AlignedData {
  return [view.times, ...view.values];
}

function buildOptions(box: HTMLElement, view: View, last: boolean, seconds: number): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const grid = { stroke: color("--line"), width: 1 };
  const axis = { stroke: color("--text-faint"), grid, ticks: { show: false }, font: `11px ${color("--font")}` };
  const clock = seconds > 300 ? { hour: "2-digit", minute: "2-digit" } : CLOCK;
  const format = new Intl.DateTimeFormat("en-GB", clock as Intl.DateTimeFormatOptions);
  return {
    width: box.clientWidth,
    height: computeHeight(last),
    padding: [8, 12, last ? 0 : 8, 0],
    legend: { show: false },
    cursor: { sync: { key: "live" }, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: true, range: () => [view.times[0] ?? 0, view.times.at(-1) ?? 1] } },
    axes: [
      {
        ...axis,
        size: last ? 28 : 0,
        values: (_, ticks) => (last ? ticks.map((tick) => format.format(tick * 1000)) : ticks.map(() => "")),
      },
      {
        ...axis,
        size: 72,
        incrs: (_, __, lowest, highest, pixels, space) => listSteps(lowest, highest, pixels, space),
        values: (_, ticks) => ticks.map(formatMark),
      },
    ],
    series: [
      {},
      ...view.series.map((series, index) => ({
        label: buildSeriesName(series),
        stroke: color(`--series-${(index % COLORS) + 1}`),
        width: 1.5,
        points: {
          show: false,
          size: 5,
          fill: color(`--series-${(index % COLORS) + 1}`),
          filter: (plot: uPlot, at: number) => findIsolated(plot.data[at] as readonly Point[]),
        },
        ...(index >= COLORS ? { dash: [6, 4] } : {}),
      })),
    ],
  };
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
