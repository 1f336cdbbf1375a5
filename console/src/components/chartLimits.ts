// The expected range of a signal as a band behind the lines of a chart.
import type uPlot from "uplot";
import { formatNumber } from "@/format.ts";

/** The expected range of values; null where it is open. */
export interface Limits {
  min: number | null;
  max: number | null;
}

/** Limits of a value whose range is unknown. */
export const NO_LIMITS: Limits = { min: null, max: null };

/** Describes limits: "4.2 to 8.8 °C"; empty without limits. */
export function describeLimits({ min, max }: Limits, unit: string): string {
  const end = unit === "" ? "" : ` ${unit}`;
  if (min !== null && max !== null) {
    return `${formatNumber(min)} to ${formatNumber(max)}${end}`;
  }
  if (min !== null) {
    return `at least ${formatNumber(min)}${end}`;
  }
  return max === null ? "" : `at most ${formatNumber(max)}${end}`;
}

/**
 * Returns the vertical range of the band in pixels, within the plot; undefined if it is not visible.
 * @param toPixel converts a value to pixels from the top
 */
export function computeBand(
  { min, max }: Limits,
  toPixel: (value: number) => number,
  top: number,
  height: number,
): { from: number; to: number } | undefined {
  if (min === null && max === null) {
    return undefined;
  }
  const clamp = (pixel: number) => Math.min(Math.max(pixel, top), top + height);
  const from = clamp(max === null ? top : toPixel(max));
  const to = clamp(min === null ? top + height : toPixel(min));
  return to > from ? { from, to } : undefined;
}

/** Returns uPlot hooks that draw the band behind the lines, and a line at each limit that is visible. */
export function buildLimitHooks(limits: Limits, fill: string, line: string): uPlot.Hooks.Arrays {
  const draw = (plot: uPlot) => {
    const { left, top, width, height } = plot.bbox;
    const toPixel = (value: number) => plot.valToPos(value, "y", true);
    const band = computeBand(limits, toPixel, top, height);
    const { ctx } = plot;
    ctx.save();
    if (band) {
      ctx.fillStyle = fill;
      ctx.fillRect(left, band.from, width, band.to - band.from);
    }
    ctx.strokeStyle = line;
    ctx.setLineDash([4, 4]);
    for (const limit of [limits.min, limits.max]) {
      const at = limit === null ? -1 : toPixel(limit);
      if (at >= top && at <= top + height) {
        ctx.beginPath();
        ctx.moveTo(left, at);
        ctx.lineTo(left + width, at);
        ctx.stroke();
      }
    }
    ctx.restore();
  };
  return { drawClear: [draw] };
}
