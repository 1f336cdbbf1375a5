import { useEffect, useMemo, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { loaded } from "@/components/Chart.tsx";
import { mark, steps } from "@/components/chartValues.ts";
import { reading } from "@/format.ts";
import type { Live } from "@/live/live.ts";
import { lonely, type Point, View } from "@/live/view.ts";
import { onTheme } from "@/shell/theme.ts";
import { called, type Group } from "./choice.ts";
import css from "./Lane.module.css";

const HEIGHT = 132;
const COLORS = 6;

interface Props {
  live: Live;
  group: Group;
  /** Whether the times stand below it. */
  last: boolean;
}

/** The series of one field over the window, drawn as they come. */
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
      plot?.setData(data(view));
    };
    const make = async () => {
      const { default: Plot } = await loaded();
      if (!gone && box.current) {
        plot?.destroy();
        plot = new Plot(options(box.current, view, last, history.seconds), data(view), box.current);
        draw(live.pausedAt ?? Date.now());
      }
    };
    void make();
    const ends = [live.onDraw(draw), onTheme(() => void make())];
    const sizes = new ResizeObserver(([entry]) => {
      plot?.setSize({ width: Math.floor(entry?.contentRect.width ?? 0), height: height(last) });
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
              <span class={css.name}>{called(series)}</span>
              <strong>{Number.isNaN(series.value) ? "–" : reading(series.value)}</strong>
            </li>
          ))}
        </ul>
      </header>
      <div
        ref={box}
        role="img"
        aria-label={`${group.field} over time; the newest values stand above`}
        style={{ height: `${height(last)}px` }}
      />
    </section>
  );
}

function height(last: boolean): number {
  return last ? HEIGHT + 28 : HEIGHT;
}

function data(view: View): uPlot.AlignedData {
  return [view.times, ...view.values];
}

function options(box: HTMLElement, view: View, last: boolean, seconds: number): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const grid = { stroke: color("--line"), width: 1 };
  const axis = { stroke: color("--text-faint"), grid, ticks: { show: false }, font: `11px ${color("--font")}` };
  const clock = seconds > 300 ? { hour: "2-digit", minute: "2-digit" } : CLOCK;
  const format = new Intl.DateTimeFormat("en-GB", clock as Intl.DateTimeFormatOptions);
  return {
    width: box.clientWidth,
    height: height(last),
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
        incrs: (_, __, lowest, highest, pixels, space) => steps(lowest, highest, pixels, space),
        values: (_, ticks) => ticks.map(mark),
      },
    ],
    series: [
      {},
      ...view.series.map((series, index) => ({
        label: called(series),
        stroke: color(`--series-${(index % COLORS) + 1}`),
        width: 1.5,
        points: {
          show: false,
          size: 5,
          fill: color(`--series-${(index % COLORS) + 1}`),
          filter: (plot: uPlot, at: number) => lonely(plot.data[at] as readonly Point[]),
        },
        ...(index >= COLORS ? { dash: [6, 4] } : {}),
      })),
    ],
  };
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
