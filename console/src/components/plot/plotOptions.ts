// Options of uPlot that all charts share.
import type uPlot from "uplot";
import type { Point } from "@/live/view.ts";
import { findIsolated } from "@/live/view.ts";
import { buildLimitHooks, type Limits } from "../chartLimits.ts";
import { formatTicks } from "../chartTimes.ts";
import { formatMark, listSteps, measureWidth } from "../chartValues.ts";
import type { Range } from "./decimate.ts";
import { getLineStyle } from "./lineStyles.ts";

/** The look of a chart. */
export interface Look {
  names: readonly string[];
  /** Places of the lines that consist of marks. */
  marks: ReadonlySet<number>;
  unit: string;
  limits: Limits;
  height: number;
}

/** What a chart reports and asks while it is drawn. */
export interface PlotHandlers {
  /** Returns the visible range. */
  range: () => Range;
  /** Called when the cursor moves; undefined if it leaves. */
  onCursor: (index: number | undefined) => void;
  /** Called with a dragged range. */
  onSelect: (range: Range) => void;
  onReset: () => void;
  onPointer: (inside: boolean) => void;
  /** Tells whether a line is not drawn. */
  isHidden: (index: number) => boolean;
}

/** Half of the widest time, so that the label of the last tick is not clipped. */
const RIGHT = 40;
const LEAST_AXIS = 72;
const SHORTEST_DRAG = 4;
/** From this many seconds on, the marks of the time axis can be days, which are wider than times of a day. */
const LONG = 2 * 86_400;
const DAY_PIXELS = 84;
const CLOCK_PIXELS = 60;
const FRACTION_PIXELS = 92;
const MARK_PIXELS = 11;

/** Builds the options of a chart in a box, with the colours of its theme. */
export function buildPlotOptions(box: HTMLElement, look: Look, handlers: PlotHandlers, sync?: string): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  return {
    width: box.clientWidth,
    height: look.height,
    padding: [10, RIGHT, 0, 0],
    legend: { show: false },
    cursor: buildCursor(handlers, sync),
    hooks: {
      ...buildLimitHooks(look.limits, color("--limit-band"), color("--limit-line")),
      init: [(plot) => watchPointer(plot, handlers)],
      setCursor: [
        (plot) => handlers.onCursor((plot.cursor.left ?? -1) < 0 ? undefined : (plot.cursor.idx ?? undefined)),
      ],
      setSelect: [(plot) => takeSelection(plot, handlers)],
    },
    scales: { x: { time: true, range: () => [...handlers.range()] as [number, number] } },
    axes: buildAxes(color, look.unit),
    series: [
      {},
      ...look.names.map((label, index) => ({
        ...(look.marks.has(index) ? buildMarks(label, color) : buildSeries(label, index, color)),
        show: !handlers.isHidden(index),
      })),
    ],
  };
}

function buildCursor({ onReset }: PlotHandlers, sync: string | undefined): uPlot.Cursor {
  const moves = (type: string) => type === "mousemove" || type === "mouseleave";
  const reset = () => {
    onReset();
    return null;
  };
  return {
    points: { size: 6 },
    drag: { x: true, y: false, setScale: false },
    bind: { dblclick: () => reset },
    ...(sync === undefined ? {} : { sync: { key: sync, filters: { pub: moves, sub: moves } } }),
  };
}

function watchPointer(plot: uPlot, { onPointer }: PlotHandlers): void {
  plot.over.addEventListener("mouseenter", () => onPointer(true));
  plot.over.addEventListener("mouseleave", () => onPointer(false));
}

function takeSelection(plot: uPlot, { onSelect }: PlotHandlers): void {
  const { left, width } = plot.select;
  if (width >= SHORTEST_DRAG) {
    onSelect([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }
}

function buildAxes(color: (name: string) => string, unit: string): uPlot.Axis[] {
  const axis = {
    stroke: color("--text-faint"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { stroke: color("--line") },
    font: `12px ${color("--font")}`,
  };
  return [
    {
      ...axis,
      space: (_, __, from, to, width) => chooseSpace(to - from, width),
      values: (_, ticks, __, ___, step) => formatTicks(ticks, step),
    },
    {
      ...axis,
      size: (_, marks) => measureWidth(marks, LEAST_AXIS),
      incrs: (_, __, lowest, highest, pixels, space) => listSteps(lowest, highest, pixels, space),
      values: (_, ticks, __, ___, step) => ticks.map((tick) => `${formatMark(tick, step)}${unit && ` ${unit}`}`),
    },
  ];
}

/** Returns the least distance of time marks in pixels; marks of a fraction of a second have milliseconds. */
export function chooseSpace(seconds: number, width: number): number {
  if (seconds > LONG) {
    return DAY_PIXELS;
  }
  return (seconds / width) * CLOCK_PIXELS < 1 ? FRACTION_PIXELS : CLOCK_PIXELS;
}

function buildSeries(label: string, index: number, color: (name: string) => string): uPlot.Series {
  const { color: name, dash, width } = getLineStyle(index);
  const stroke = color(name);
  const filter = (plot: uPlot, at: number) => findIsolated(plot.data[at] as readonly Point[]);
  return { label, stroke, width, dash: [...dash], points: { show: false, size: 5, fill: stroke, filter } };
}

function buildMarks(label: string, color: (name: string) => string): uPlot.Series {
  const stroke = color("--bad");
  return {
    label,
    stroke,
    paths: () => null,
    points: { show: true, size: MARK_PIXELS, width: 2, stroke, fill: "transparent" },
  };
}
