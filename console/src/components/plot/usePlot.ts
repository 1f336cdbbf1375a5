import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { subscribeToTheme } from "@/shell/theme.ts";
import { useZone } from "@/shell/timeZone.ts";
import { type Limits, NO_LIMITS } from "../chartLimits.ts";
import { buildPlotOptions, type PlotHandlers } from "./plotOptions.ts";

interface Inputs {
  names: readonly string[];
  marks?: ReadonlySet<number>;
  unit?: string;
  limits?: Limits;
  height: number;
  sync?: string;
}

const NO_MARKS: ReadonlySet<number> = new Set();

interface Ref<T> {
  current: T;
}

/**
 * Creates a chart in a box, and creates it again if its look, the theme or the time zone changes.
 * @param visible whether the box is on the screen; nothing is created before it is
 * @param refresh draws the data; called after each creation and each change of the size
 * @returns whether the library could not be loaded, and a function that tries again
 */
export function usePlot(
  box: Ref<HTMLDivElement | null>,
  plot: Ref<uPlot | undefined>,
  visible: boolean,
  { names, marks = NO_MARKS, unit = "", limits = NO_LIMITS, height, sync }: Inputs,
  refresh: () => void,
  handlers: PlotHandlers,
): { failed: boolean; retry: () => void } {
  const zone = useZone();
  const [failed, setFailed] = useState(false);
  const [turn, setTurn] = useState(0);
  // A chart that leaves the screen stays, because creating it again costs more than keeping it.
  const wasVisible = useRef(false);
  wasVisible.current ||= visible;
  const wanted = wasVisible.current;
  const key = names.join("\n");
  const look = useMemo(
    () => ({ names, marks, unit, limits, height }),
    [key, marks, unit, limits.min, limits.max, height],
  );
  useEffect(() => {
    if (!wanted) {
      return;
    }
    let gone = false;
    const make = async () => {
      const library = await loadLibrary();
      if (gone || !box.current) {
        return;
      }
      setFailed(library === undefined);
      if (library) {
        plot.current?.destroy();
        const empty = [[], ...names.map(() => [])] as unknown as uPlot.AlignedData;
        plot.current = new library.default(buildPlotOptions(box.current, look, handlers, sync), empty, box.current);
        refresh();
      }
    };
    void make();
    const stopTheme = subscribeToTheme(() => void make());
    const stopSizes = watchWidth(box.current, (width) => {
      plot.current?.setSize({ width, height });
      refresh();
    });
    return () => {
      gone = true;
      stopTheme();
      stopSizes();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [look, sync, zone, turn, wanted]);
  return { failed, retry: () => setTurn(turn + 1) };
}

/** Fetches the library when the first chart is drawn; undefined if the service does not respond. */
async function loadLibrary(): Promise<{ default: typeof uPlot } | undefined> {
  try {
    return await import("uplot");
  } catch {
    return undefined;
  }
}

/** Calls back with the width of a box, now and after each change; returns the function that ends this. */
function watchWidth(box: HTMLElement | null, changed: (width: number) => void): () => void {
  const sizes = new ResizeObserver(([entry]) => changed(Math.floor(entry?.contentRect.width ?? 0)));
  if (box) {
    sizes.observe(box);
  }
  return () => sizes.disconnect();
}
