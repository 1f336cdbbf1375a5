import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { Button } from "../Button.tsx";
import type { Limits } from "../chartLimits.ts";
import type { PlotData, Range } from "./decimate.ts";
import { findKeyAction } from "./keys.ts";
import css from "./Plot.module.css";
import { findEnd, findNextPlace, findReadings } from "./readings.ts";
import { describeReadings, Tooltip } from "./Tooltip.tsx";
import { usePlot } from "./usePlot.ts";
import { useVisible } from "./useVisible.ts";

/** The data of a chart. */
export interface PlotSource {
  /** Returns the whole range. */
  range: () => Range;
  /** Returns the points of a range for a number of pixels. */
  read: (range: Range, pixels: number) => PlotData;
  /** Calls back when the data change; returns the function that unsubscribes. */
  subscribe?: (changed: () => void) => () => void;
}

interface Props {
  /** Description of the chart, for screen readers. */
  label: string;
  /** Must be stable between renders. */
  source: PlotSource;
  /** Names of the lines. */
  names: readonly string[];
  /** Places of the lines that are not drawn. */
  hidden?: ReadonlySet<number>;
  /** Places of the lines that consist of marks; must be stable between renders. */
  marks?: ReadonlySet<number>;
  unit?: string;
  /** Expected range, drawn as a band. */
  limits?: Limits;
  height: number;
  /** The visible range; undefined for the whole one. */
  zoom: Range | undefined;
  onZoom: (range: Range | undefined) => void;
  /** Charts with the same key share their cursor. */
  sync?: string;
}

const NOTHING_HIDDEN: ReadonlySet<number> = new Set();
const EMPTY: PlotData = { times: [], lines: [] };
/** The tooltip shows values up to this distance from the cursor. */
const NEAR_PIXELS = 24;
const LEAST_PIXELS = 240;

/** Lines over time with a tooltip. Dragging zooms; with the focus, arrow keys move the cursor and + and - zoom. */
export function Plot(props: Props) {
  const { label, source, unit = "", height, zoom, onZoom, hidden = NOTHING_HIDDEN } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useRef<PlotData>(EMPTY);
  const [inside, setInside] = useState(false);
  const [focused, setFocused] = useState(false);
  const [cursor, setCursor] = useState<{ index: number }>();
  const visible = useVisible(box);
  const latest = useRef(props);
  latest.current = props;
  const refresh = () => {
    if (plot.current) {
      const { current } = latest;
      shown.current = current.source.read(current.zoom ?? current.source.range(), measurePixels(plot.current));
      plot.current.setData([shown.current.times, ...shown.current.lines] as unknown as uPlot.AlignedData);
    }
  };
  const active = useRef(false);
  active.current = inside || focused;
  const load = usePlot(box, plot, visible, props, refresh, {
    range: () => latest.current.zoom ?? latest.current.source.range(),
    onCursor: (index) => active.current && setCursor(index === undefined ? undefined : { index }),
    onSelect: (range) => latest.current.onZoom(range),
    isHidden: (line) => latest.current.hidden?.has(line) ?? false,
    onReset: () => latest.current.onZoom(undefined),
    onPointer: (now) => {
      setInside(now);
      setCursor(undefined);
    },
  });
  useEffect(() => {
    if (!visible) {
      return;
    }
    refresh();
    return source.subscribe?.(refresh);
  }, [source, zoom, visible]);
  useEffect(() => {
    for (const [index] of props.names.entries()) {
      plot.current?.setSeries(index + 1, { show: !hidden.has(index) });
    }
  }, [hidden]);
  const index = active.current ? cursor?.index : undefined;
  const readings = index === undefined ? [] : findReadings(shown.current, index, measureTolerance(plot.current));
  const drawn = readings.filter(({ line }) => !hidden.has(line));
  const at = index === undefined ? undefined : shown.current.times[index];
  const move = (event: KeyboardEvent) => {
    const range = zoom ?? source.range();
    const action = findKeyAction(event.key, range, source.range(), at ?? range[1]);
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    event.preventDefault();
    if (action.kind === "zoom") {
      onZoom(action.range);
    } else {
      placeCursor(plot.current, findPlace(shown.current, cursor?.index, action.steps));
    }
  };
  return (
    <div class={css.plot} style={{ minHeight: `${height}px` }}>
      <div ref={box} class={css.canvas} aria-hidden="true" />
      <div
        role="slider"
        class={css.reader}
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, shown.current.times.length - 1)}
        aria-valuenow={index ?? 0}
        aria-valuetext={
          at === undefined ? "Arrow keys read the values" : describeReadings(at, drawn, props.names, unit)
        }
        onKeyDown={move}
        onFocus={() => setFocused(true)}
        onBlur={() => {
          setFocused(false);
          setCursor(undefined);
        }}
      />
      {load.failed && (
        <p class={css.failed}>
          The chart could not be loaded. <Button onClick={load.retry}>Retry</Button>
        </p>
      )}
      {at !== undefined && plot.current && (
        <Tooltip at={at} readings={drawn} names={props.names} unit={unit} {...measurePlace(plot.current, at)} />
      )}
    </div>
  );
}

/** Returns the width of a chart; a hidden one has none, and is measured again when it is shown. */
function measurePixels(plot: uPlot): number {
  return Math.max(LEAST_PIXELS, plot.width);
}

function measureTolerance(plot: uPlot | undefined): number {
  return plot ? Math.abs(plot.posToVal(NEAR_PIXELS, "x") - plot.posToVal(0, "x")) : 0;
}

/** Returns the distance of a moment from the left, and the width of the chart, in pixels. */
function measurePlace(plot: uPlot, at: number): { left: number; width: number } {
  return { left: plot.over.offsetLeft + plot.valToPos(at, "x"), width: plot.over.offsetLeft + plot.over.clientWidth };
}

function placeCursor(plot: uPlot | undefined, index: number): void {
  const at = plot?.data[0][index];
  if (plot && at !== undefined) {
    plot.setCursor({ left: plot.valToPos(at, "x"), top: plot.over.clientHeight / 2 });
  }
}

/** Returns the place after some steps from the cursor; without a cursor the newest value. */
function findPlace(data: PlotData, from: number | undefined, steps: number): number {
  if (!Number.isFinite(steps) || from === undefined) {
    return findEnd(data, steps === Number.NEGATIVE_INFINITY ? "first" : "last");
  }
  let place = from;
  for (let step = 0; step < Math.abs(steps); step += 1) {
    place = findNextPlace(data, place, steps < 0 ? -1 : 1);
  }
  return place;
}
