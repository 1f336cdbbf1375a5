import { useMemo } from "preact/hooks";
import { describeLimits } from "@/components/chartLimits.ts";
import { LineSample } from "@/components/plot/LineSample.tsx";
import { Plot, type PlotSource } from "@/components/plot/Plot.tsx";
import type { Scale } from "@/components/signals.ts";
import { formatReading } from "@/format.ts";
import type { Live } from "@/live/live.ts";
import { View } from "@/live/view.ts";
import { buildSeriesName, type Group } from "./choice.ts";
import css from "./Lane.module.css";

const HEIGHT = 172;

interface Props {
  live: Live;
  group: Group;
  scale: Scale;
}

/** A chart of one field over the window, drawn live. */
export function Lane({ live, group, scale }: Props) {
  const { history } = live;
  const ids = group.series.map((series) => series.id).join(",");
  const limits = describeLimits(scale.limits, scale.unit);
  const source = useMemo(() => createSource(live, new View(group.series, history.width)), [ids, live]);
  return (
    <section class={css.lane} aria-label={group.field}>
      <header>
        <h3>
          {group.field}
          {scale.unit && <span class={css.unit}> {scale.unit}</span>}
        </h3>
        <ul>
          {group.series.map((series, index) => (
            <li key={series.id}>
              <LineSample index={index} />
              <span class={css.name}>{buildSeriesName(series)}</span>
              <strong>{Number.isNaN(series.value) ? "–" : formatReading(series.value)}</strong>
            </li>
          ))}
        </ul>
        {limits && <span class={css.limits}>expected {limits}</span>}
      </header>
      <Plot
        label={`${group.field} over time`}
        source={source}
        names={group.series.map(buildSeriesName)}
        unit={scale.unit}
        limits={scale.limits}
        height={HEIGHT}
        zoom={live.zoom}
        onZoom={(range) => live.zoomTo(range)}
        sync="live"
      />
    </section>
  );
}

function createSource(live: Live, view: View): PlotSource {
  view.fill(live.pausedAt ?? live.now());
  return {
    range: () => [view.times[0] ?? 0, view.times.at(-1) ?? 1],
    read: () => ({ times: view.times, lines: view.values }),
    subscribe: (changed) =>
      live.onDraw((now) => {
        view.fill(now);
        changed();
      }),
  };
}
